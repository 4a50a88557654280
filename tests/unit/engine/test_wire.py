"""HTTP/1.1 responses out of bytes that come in any portions."""

import itertools

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_consumer.engine import wire
from regen_consumer.engine.wire import NotHttpError

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = (
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n'
)


def read(data, *, portions=None, **limits):
    """The message out of ``data``, cut into pieces at the places given."""
    reader = wire.Reader(**limits)
    places = [0, *sorted(p % (len(data) + 1) for p in portions or ()), len(data)]
    message = None
    for begin, end in itertools.pairwise(places):
        if begin != end or begin == end == 0:
            assert message is None
            message = reader.feed(data[begin:end])
    return message


@given(data=st.sampled_from([PLAIN, CHUNKED]), portions=st.lists(st.integers(0, 200), max_size=8))
def test_a_response_is_the_same_however_its_bytes_come(data, portions):
    assert read(data, portions=portions) == read(data)


def test_a_plain_response_is_read():
    message = read(PLAIN)
    assert (message.status, message.body, message.reusable) == (200, b"{}", True)
    assert message.headers["content-type"] == "application/json"


def test_chunks_are_put_together():
    message = read(CHUNKED)
    assert (message.body, message.reusable) == (b'{"a":1}', True)


def test_a_trailer_after_the_chunks_is_left_out():
    assert read(CHUNKED[:-2] + b"x-sum: 1\r\n\r\n").body == b'{"a":1}'


def test_interim_responses_are_passed_over():
    assert read(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN).body == b"{}"


def test_a_response_without_a_length_lasts_until_the_connection_ends():
    reader = wire.Reader()
    assert reader.feed(b"HTTP/1.0 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    message = reader.end()
    assert (message.body, message.reusable) == (b"hello", False)


@pytest.mark.parametrize("data", [b"", PLAIN[:20], PLAIN[:-1], CHUNKED[:-2], CHUNKED[:60]])
def test_a_response_that_ends_too_early_is_none(data):
    reader = wire.Reader()
    assert reader.feed(data) is None
    assert reader.end() is None


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\n", True),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n", True),
    ],
)
def test_a_connection_is_used_again_only_where_the_server_keeps_it(head, reusable):
    assert read(head + b"content-length: 0\r\n\r\n").reusable is reusable


def test_bytes_after_the_response_make_the_connection_useless():
    assert read(PLAIN + b"x").reusable is False
    assert read(CHUNKED + b"x").reusable is False


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_needs_no_length(status):
    assert read(b"HTTP/1.1 %d None\r\n\r\n" % status).body == b""


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * (wire.HEAD_BYTES_MAX + 1),
    ],
)
def test_what_is_no_http_is_refused(data):
    with pytest.raises(NotHttpError):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        + b"1f4\r\n%s\r\n" % (b"x" * 500) * 3,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
    ],
)
def test_a_body_that_is_too_large_is_refused_before_it_is_there(data):
    with pytest.raises(NotHttpError, match="more than"):
        read(data, body_bytes_max=1000)


names = st.sampled_from(["X-A", "x-b", "Server", "Date"])
values = st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=9)


@given(
    status=st.integers(200, 599),
    headers=st.lists(st.tuples(names, values), max_size=4, unique_by=lambda pair: pair[0].lower()),
    chunks=st.lists(st.binary(min_size=1, max_size=30), max_size=4),
    chunked=st.booleans(),
    portions=st.lists(st.integers(0, 500), max_size=6),
)
def test_it_reads_what_h11_writes(status, headers, chunks, chunked, portions):
    body = b"".join(chunks)
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))
    server = h11.Connection(h11.SERVER)
    server.receive_data(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    while not isinstance(server.next_event(), h11.EndOfMessage):
        continue
    sent = server.send(h11.Response(status_code=status, headers=[*headers, framing]))
    bodiless = status in (204, 304)
    for chunk in chunks if not bodiless else ():
        sent += server.send(h11.Data(data=chunk))
    sent += server.send(h11.EndOfMessage()) if not bodiless or chunked else b""
    if bodiless:
        sent = sent[: sent.index(b"\r\n\r\n") + 4]
    message = read(sent, portions=portions)
    assert (message.status, message.body) == (status, b"" if bodiless else body)
    assert message.headers.items() >= {name.lower(): value for name, value in headers}.items()
    assert message.reusable is True
