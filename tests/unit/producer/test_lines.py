"""JSON lines: what ends a line, what is a row, and how a cut is told from a bad line."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_producer import lines, raw


def read(data: bytes) -> list[raw.RawRow | raw.Cut]:
    return list(lines.read(io.BytesIO(data), "a.jsonl"))


def values(data: bytes) -> list[Any]:
    return [item.value for item in read(data) if isinstance(item, raw.RawRow) and not item.error]


@pytest.mark.parametrize(
    "data",
    [
        b'{"n":0}\n{"n":1}\n',
        b'{"n":0}\n{"n":1}',
        b'{"n":0}\r\n{"n":1}\r\n',
        b'\xef\xbb\xbf{"n":0}\n{"n":1}\n',
        b'{"n":0}\n\xef\xbb\xbf{"n":1}\n',
        b'\n{"n":0}\n \t\r\n\n{"n":1}\n\n',
        b'  {"n":0}  \n\t{"n":1}\t\n',
    ],
)
def test_rows_are_found_however_lines_end(data: bytes) -> None:
    assert read(data) == [raw.RawRow(0, {"n": 0}), raw.RawRow(1, {"n": 1})]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_newline_ends_a_line(separator: str) -> None:
    text = f"before{separator}after"
    line = json.dumps({"s": text}, ensure_ascii=False)
    if separator in "\x0b\x0c\x1c\r":  # control characters have to be escaped in JSON
        line = json.dumps({"s": text})
    assert values(line.encode() + b"\n") == [{"s": text}]


def test_a_bad_line_is_one_rejected_row_and_names_its_line() -> None:
    found = read(b'{"n":0}\n\n{"n":\n{"s":"\xff"}\n{"n":1}\n')
    assert [item.error for item in found if isinstance(item, raw.RawRow)] == [
        None,
        "invalid_json",
        "invalid_utf8",
        None,
    ]
    assert isinstance(found[1], raw.RawRow)
    assert found[1].detail is not None
    assert found[1].detail.startswith("line 3: ")
    assert [item.number for item in found if isinstance(item, raw.RawRow)] == [0, 1, 2, 3]


CUTS = {
    b'{"s":"half': "inside a string",
    b'{"s":"half\\': "inside a string",
    b'{"s":"ha\xc3': "inside a string",
    b'{"s":"a}]"': "inside a row",
    b'{"s":[1, 2]': "inside a row",
    b'{"s":': "inside a row",
    b"{": "inside a row",
}


@pytest.mark.parametrize(("tail", "where"), CUTS.items())
def test_a_file_that_ends_inside_a_row_is_cut(tail: bytes, where: str) -> None:
    whole = b'{"n":0}\n'
    *rows, cut = read(whole + tail)
    assert rows == [raw.RawRow(0, {"n": 0})]
    assert cut == raw.Cut("a.jsonl", 1, len(whole), len(whole + tail), where)


@pytest.mark.parametrize(
    "tail", [b"{'n': 1}", b"what?", b'{"n":1}}', b"\x00\x00", b'{"n":1}{"n":2}']
)
def test_a_bad_last_line_that_is_complete_is_no_cut(tail: bytes) -> None:
    found = read(b'{"n":0}\n' + tail)
    assert [item.error for item in found if isinstance(item, raw.RawRow)] == [None, "invalid_json"]


def test_a_half_line_that_ends_with_a_newline_is_a_bad_line() -> None:
    found = read(b'{"s":"half\n')
    assert len(found) == 1
    assert isinstance(found[0], raw.RawRow)
    assert found[0].error == "invalid_json"


def test_a_line_over_the_bound_is_rejected_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 64)
    long = json.dumps({"s": "x" * 200}).encode()
    found = read(b'{"n":0}\n' + long + b'\n{"n":1}\n{"s":"half')
    assert [item.error for item in found if isinstance(item, raw.RawRow)] == [
        None,
        "invalid_json",
        None,
    ]
    assert isinstance(found[-1], raw.Cut)
    assert found[-1].begins == len(long) + 17


@given(st.binary())
def test_any_bytes_are_rows_rejected_rows_or_a_cut(data: bytes) -> None:
    found = read(data)
    assert all(isinstance(item, raw.RawRow) for item in found[:-1])
