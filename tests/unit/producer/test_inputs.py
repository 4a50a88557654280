"""Which files a command means, and what tells one input from another."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regen_common import errors
from regen_producer import inputs

MIB = 1 << 20


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def file(data: bytes, name: str = "a.jsonl", folder: str = ".") -> str:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return str(path)

    return file


def fingerprint(*names: str, **choices: object) -> str:
    return inputs.fingerprint(inputs.find(names), inputs.Choices(**choices))  # type: ignore[arg-type]


def test_the_same_files_have_the_same_fingerprint_wherever_they_are(
    write: Callable[..., str],
) -> None:
    assert fingerprint(write(b"x")) == fingerprint(write(b"x", folder="elsewhere"))


@pytest.mark.parametrize(
    ("data", "other"),
    [
        (b"x", b"y"),
        (b"x", b"xx"),
        (b"a" * (3 * MIB), b"b" + b"a" * (3 * MIB - 1)),
        (b"a" * (3 * MIB), b"a" * (3 * MIB - 1) + b"b"),
    ],
    ids=["content", "size", "first byte", "last byte"],
)
def test_another_content_has_another_fingerprint(
    write: Callable[..., str], data: bytes, other: bytes
) -> None:
    assert fingerprint(write(data)) != fingerprint(write(other))


def test_name_order_and_number_of_files_count(write: Callable[..., str]) -> None:
    one, two = write(b"x", "1.jsonl"), write(b"y", "2.jsonl")
    found = {fingerprint(one), fingerprint(one, two), fingerprint(two, one), fingerprint(one, one)}
    assert len(found | {fingerprint(write(b"x", "3.jsonl"))}) == 5


def test_flags_that_change_the_store_count(write: Callable[..., str]) -> None:
    name = write(b"x")
    found = {fingerprint(name), fingerprint(name, dedupe=True), fingerprint(name, turns="last")}
    assert len(found | {fingerprint(name, max_prompt_chars=9)}) == 4


def test_files_of_one_name_are_told_apart_by_their_paths(write: Callable[..., str]) -> None:
    names = [write(b"x", "a.jsonl", "one"), write(b"y", "a.jsonl", "two"), write(b"z", "b.jsonl")]
    labels = [file.label for file in inputs.find(names)]
    assert labels == [str(Path(names[0]).absolute()), str(Path(names[1]).absolute()), "b.jsonl"]


@pytest.mark.parametrize(
    ("name", "kind", "cure"),
    [
        ("nothing.jsonl", errors.UsageError, "is the path right"),
        (".", errors.UsageError, "name the files in it"),
        ("-", errors.UsageError, "copy it to one first"),
        ("s3://bucket/a.jsonl", errors.UsageError, "copy it to one first"),
        ("/dev/null", errors.UsageError, "no regular file"),
        ("nul\0.jsonl", errors.InputError, "can't be read"),
    ],
)
def test_what_is_no_file_is_refused_with_a_cure(
    name: str, kind: type[errors.RegenError], cure: str
) -> None:
    with pytest.raises(kind, match=cure) as caught:
        inputs.find([name])
    assert "\n" not in str(caught.value)


def test_no_input_is_a_usage_error() -> None:
    with pytest.raises(errors.UsageError, match="name at least one"):
        inputs.find([])
