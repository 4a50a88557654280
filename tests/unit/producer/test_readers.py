"""What a file holds is seen by its content; what can't be read is refused with a cure."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_common import errors
from regen_producer import raw, readers

ROWS = [{"id": 0, "s": "a\u2028b"}, {"id": 1, "s": "\U0001f680"}]
COMPACT = json.dumps(ROWS, ensure_ascii=False).encode()
PRETTY = json.dumps(ROWS, indent=2).encode()
LINES = b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in ROWS)


def read(folder: Path, data: bytes, name: str = "a.jsonl") -> list[raw.RawRow | raw.Cut]:
    path = folder / name
    path.write_bytes(data)
    with readers.Reader(path, name) as reader:
        return list(reader.rows())


def values(found: list[raw.RawRow | raw.Cut]) -> list[Any]:
    return [item.value for item in found if isinstance(item, raw.RawRow)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.txt"])
@pytest.mark.parametrize(
    "data", [COMPACT, PRETTY, LINES, b"\xef\xbb\xbf" + PRETTY, b"\n\n " + COMPACT + b"\n\n"]
)
def test_the_content_decides_and_not_the_name(tmp_path: Path, data: bytes, name: str) -> None:
    assert values(read(tmp_path, data, name)) == ROWS


def test_lines_that_are_arrays_are_rows_of_the_wrong_kind(tmp_path: Path) -> None:
    assert values(read(tmp_path, b"[1,2]\n[3]\n")) == [[1, 2], [3]]


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"[]", b"\xef\xbb\xbf"])
def test_a_file_without_rows_has_none(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data) == []


@pytest.mark.parametrize(
    ("data", "cure"),
    [
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"\x28\xb5\x2f\xfd\x00", "unzstd"),
        (b"PAR1\x00", "convert it to JSON lines"),
        (b"PK\x03\x04", "unzip"),
        ('{"id": 1}\n'.encode("utf-16"), "iconv -f UTF-16"),
        ('{"id": 1}\n'.encode("utf-16-be"), "iconv"),
        ('{"id": 1}\n'.encode("utf-32-le"), "iconv"),
        (json.dumps(ROWS[0], indent=2).encode(), "jq -c"),
    ],
)
def test_a_file_that_can_not_be_read_is_refused_with_a_cure(
    tmp_path: Path, data: bytes, cure: str
) -> None:
    with pytest.raises(errors.InputError, match=cure) as caught:
        read(tmp_path, data)
    assert str(caught.value).startswith("a.jsonl ")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="No such file"):
        readers.Reader(tmp_path / "none.jsonl", "none.jsonl")


def test_the_position_ends_at_the_file_s_size(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(COMPACT)
    with readers.Reader(path, "a.json") as reader:
        assert len(list(reader.rows())) == 2
        assert reader.position() == len(COMPACT)


@given(data=st.binary(max_size=80))
def test_any_file_gives_rows_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    with contextlib.suppress(errors.InputError):
        found = read(folder, data)
        assert all(isinstance(item, raw.RawRow) for item in found[:-1])
