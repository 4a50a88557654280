"""A JSON array as rows: whole whatever the window's size, past bad elements, up to a cut."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_common import errors
from regen_producer import arrays, raw, window


def read(data: bytes, chunk_bytes: int = window.CHUNK_BYTES) -> list[raw.RawRow | raw.Cut]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "CHUNK_BYTES", chunk_bytes)
        return list(arrays.read(io.BytesIO(data), "a.json"))


def rows_of(data: bytes, chunk_bytes: int = window.CHUNK_BYTES) -> list[raw.RawRow]:
    found = read(data, chunk_bytes)
    assert all(isinstance(item, raw.RawRow) for item in found), found
    return [item for item in found if isinstance(item, raw.RawRow)]


def row(number: int, text: str = "x") -> dict[str, Any]:
    return {"id": number, "conversations": [{"from": "human", "value": text}]}


def dumped(*numbers: int) -> list[bytes]:
    return [json.dumps(row(number)).encode() for number in numbers]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.sampled_from('ab\\"{}[],:\n\u2028é\U0001f680')),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(VALUES, max_size=6),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.sampled_from([1, 2, 3, 7, 64, 4096]),
)
def test_all_elements_are_read_whatever_the_layout_and_the_window(
    values: list[Any], indent: int | None, ascii_only: bool, chunk_bytes: int
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    found = rows_of(text.encode(), chunk_bytes)
    assert [item.value for item in found] == values
    assert [item.number for item in found] == list(range(len(values)))


@given(st.integers(0, 3), st.sampled_from([b",", b",\n  "]), st.sampled_from([3, 4096]), st.data())
def test_a_file_cut_anywhere_gives_its_whole_rows_and_one_report(
    count: int, separator: bytes, chunk_bytes: int, data: st.DataObject
) -> None:
    rows = [row(number, 'a "quoted" brace } and \u00e9\U0001f680') for number in range(count)]
    pieces = [json.dumps(item, ensure_ascii=False).encode() for item in rows]
    whole = b"[" + separator.join(pieces) + b"]"
    ends = [len(b"[" + separator.join(pieces[: n + 1])) for n in range(count)]
    at = data.draw(st.integers(1, len(whole) - 1))
    *before, cut = read(whole[:at], chunk_bytes)
    expected = rows[: sum(end <= at for end in ends)]
    assert [item.value for item in before if isinstance(item, raw.RawRow)] == expected
    assert isinstance(cut, raw.Cut)
    assert (cut.rows, cut.ends) == (len(expected), at)
    if cut.begins is not None:
        assert whole[cut.begins :].startswith(pieces[len(expected)])


@pytest.mark.parametrize(
    ("tail", "where"),
    [
        (b'{"id": 1, "conversations": [{"value": "ha', "inside a string"),
        (b'{"id": 1, "conversations": [{"value": "ha\xc3', "inside a string"),
        (b'{"id": 1, "conversations": [', "inside a row"),
        (b'{"id": 1, "conversations": []', "inside a row"),
        (b'"ha', "inside a string"),
        (b"nul", "inside a row"),
    ],
)
def test_a_cut_says_where_it_is(tail: bytes, where: str) -> None:
    head = b"[" + dumped(0)[0] + b",\n"
    *_, cut = read(head + tail)
    assert cut == raw.Cut("a.json", 1, len(head), len(head + tail), where)
    assert str(cut) == (
        f"a.json is cut after 1 whole rows: it ends {where} at byte {len(head + tail)}; "
        f"row 1 begins at byte {len(head)}"
    )


def test_what_looks_like_a_row_inside_a_cut_row_is_none() -> None:
    head = b"[" + dumped(0)[0] + b","
    tail = b'{"id": 1, "branches": [{"id": 5, "messages": []}, {"id": 6, "messages": []}], "s": "ha'
    *rows, cut = read(head + tail)
    assert len(rows) == 1
    assert cut == raw.Cut("a.json", 1, len(head), len(head + tail), "inside a string")


@pytest.mark.parametrize("tail", [b"", b",", b"\n ", b" ,\n"])
def test_an_array_without_its_end_is_cut_between_rows(tail: bytes) -> None:
    data = b"[" + dumped(0)[0] + tail
    *rows, cut = read(data)
    assert len(rows) == 1
    where = "before the closing bracket of the array"
    assert cut == raw.Cut("a.json", 1, None, len(data), where)


BAD = {
    "python's repr": b"{'id': 1, 'conversations': []}",
    "a comma too many": b'{"id": 1, "conversations": [],}',
    "no colon": b'{"id" 1, "conversations": []}',
    "a raw line break in a string": b'{"id": 1, "conversations": [{"value": "a\nb"}]}',
    "quotes in a string": b'{"id": 1, "conversations": [{"value": "he said "hi" to me"}]}',
    "a quote too few": b'{"id": 1, "conversations": [{"value": "open}]}',
    "a quote too many": b'{"id": 1, "conversations": [{"value": "a"b"}]}',
    "a brace too few": b'{"id": 1, "conversations": [{"value": "a"}]',
    "a bracket too few": b'{"id": 1, "conversations": [{"value": "a"}}',
    "a bracket of the wrong kind": b'{"id": 1, "conversations": [{"value": "a"]}}',
    "words": b"sorry, out of memory",
    "a word": b"undefined",
    "a bad escape": b'{"id": 1, "conversations": [{"value": "\\x"}]}',
    "bytes that are no text": b'{"id": 1, "conversations": [{"value": "\xff"}]}',
    "a number without end": b'{"id": ' + b"9" * 5000 + b"}",
    "nesting without end": b"[" * 3000 + b"]" * 3000,
}


@pytest.mark.parametrize("chunk_bytes", [5, 1 << 20])
@pytest.mark.parametrize("layout", [b"%s,%s,%s", b"%s,\n%s,\n%s\n", b"\n  %s,\n  %s,\n  %s"])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_element_does_not_hide_the_rows_around_it(
    bad: bytes, layout: bytes, chunk_bytes: int
) -> None:
    first, last = dumped(0, 2)
    found = rows_of(b"[" + layout % (first, bad, last) + b"]", chunk_bytes)
    good = [item.value for item in found if not item.error]
    assert good == [row(0), row(2)]
    bad_rows = [item for item in found if item.error]
    assert bad_rows
    # words with commas in them are as many elements
    assert len(bad_rows) == 1 or b"sorry" in bad


def test_a_bad_element_at_the_end_is_a_row_and_the_array_is_closed() -> None:
    found = rows_of(b"[" + dumped(0)[0] + b', {"id": 1, "conversations": [}]')
    assert [item.error for item in found] == [None, "invalid_json"]


def test_bytes_that_are_no_utf8_have_their_own_class_and_spoil_one_row_only() -> None:
    bad = b'{"id": 1, "conversations": [{"from": "human", "value": "\xff\xfe"}]}'
    found = rows_of(b"[" + b",".join([dumped(0)[0], bad, dumped(2)[0]]) + b"]", 4096)
    assert [item.error for item in found] == [None, "invalid_utf8", None]
    assert found[1].detail == f"the row that begins at byte {len(dumped(0)[0]) + 2}"


def test_an_escaped_lone_surrogate_is_no_bad_utf8() -> None:
    assert rows_of(b'[{"s": "\\udc80"}]') == [raw.RawRow(0, {"s": "\udc80"})]


@pytest.mark.parametrize("data", [b"[]", b" [ ] \n", b"\xef\xbb\xbf[]"])
def test_an_empty_array_has_no_rows(data: bytes) -> None:
    assert read(data) == []


def test_commas_may_be_missing_or_too_many() -> None:
    first, second, third = dumped(0, 1, 2)
    found = rows_of(b"[," + first + second + b",,\n" + third + b",]")
    assert [item.value for item in found] == [row(0), row(1), row(2)]


def test_arrays_one_after_another_are_read_as_one() -> None:
    first, second = dumped(0, 1)
    found = rows_of(b"[" + first + b"]\n[" + second + b"]\n")
    assert [item.value for item in found] == [row(0), row(1)]


def test_what_follows_the_array_is_reported() -> None:
    found = rows_of(b"[" + dumped(0)[0] + b'] {"id": 1}')
    assert [item.error for item in found] == [None, "invalid_json"]


def test_a_long_row_is_read_whole() -> None:
    text = 'a \\ " { [ \U0001f680' * 20_000
    found = rows_of(json.dumps([row(0), row(1, text), row(2)]).encode(), 1000)
    assert [item.value for item in found] == [row(0), row(1, text), row(2)]


def test_a_row_without_end_is_an_error_and_not_all_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window, "CHARS_MAX", 10_000)
    with pytest.raises(errors.InputError, match="the row at byte 1 goes on"):
        read(b'[{"id": "' + b"x" * 50_000, 1000)


def test_the_window_forgets_what_was_used() -> None:
    data = b"[" + b",".join(dumped(*range(2000))) + b"]"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "CHUNK_BYTES", 1000)
        seen = window.Window(io.BytesIO(data))
        longest = 0
        while seen.grow():
            longest = max(longest, len(seen.text))
            seen.at = max(0, len(seen.text) - 50)
    assert longest < 2000


@given(st.binary(max_size=60), st.sampled_from([1, 5, 4096]))
def test_any_bytes_after_the_bracket_are_rows_or_a_cut(data: bytes, chunk_bytes: int) -> None:
    found = read(b"[" + data, chunk_bytes)
    assert all(isinstance(item, raw.RawRow) for item in found[:-1])
