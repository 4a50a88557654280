"""An input file as rows. What a file holds is seen by its first bytes, whatever its name says."""

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

from regen_common import errors
from regen_producer import arrays, lines, raw

SNIFF_BYTES: Final = 1 << 20

_SPACE: Final = b" \t\r\n"
_REFUSED: Final = (
    (b"\x1f\x8b", "is gzip", "gunzip it first"),
    (b"\x28\xb5\x2f\xfd", "is zstd", "unzstd it first"),
    (b"PAR1", "is Parquet", "convert it to JSON lines first"),
    (b"PK\x03\x04", "is a zip archive", "unzip it first"),
    (codecs.BOM_UTF16_LE, "is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    (codecs.BOM_UTF16_BE, "is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
)


class Reader:
    """One file, to be read once. ``name`` is how reports call it."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        try:
            self._file = io.BufferedReader(path.open("rb", buffering=0), SNIFF_BYTES)
        except OSError as cause:
            raise errors.InputError(f"{path} can't be read: {cause.strerror}") from cause

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def position(self) -> int:
        """How many bytes of the file have been read."""
        return 0 if self._file.closed else self._file.tell()

    def rows(self) -> Iterator[raw.RawRow | raw.Cut]:
        """The rows in order; the cut, if there is one, last.

        Raises :class:`regen_common.errors.InputError` for a file that is no JSON at all, and when
        the disk fails.
        """
        try:
            head = self._file.peek(SNIFF_BYTES)
            self._refuse(head)
            read = arrays.read if is_array(head) else lines.read
            yield from read(self._file, self.name)
        except OSError as cause:
            raise errors.InputError(f"{self.name} can't be read: {cause.strerror}") from cause

    def _refuse(self, head: bytes) -> None:
        for magic, what, cure in _REFUSED:
            if head.startswith(magic):
                raise errors.InputError(f"{self.name} {what}; {cure}")
        if b"\0" in head[:4]:
            raise errors.InputError(
                f"{self.name} is UTF-16, UTF-32 or no text; convert it to UTF-8 with iconv"
            )
        if _first_line(head).rstrip(_SPACE) == b"{" and b"\n" in head:
            raise errors.InputError(
                f"{self.name} holds an object over several lines; rows are one per line, or in an "
                "array: jq -c . FILE > rows.jsonl"
            )


def is_array(head: bytes) -> bool:
    """Whether the file that begins so is one array of rows, rather than one row per line."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip(_SPACE)
    if not text.startswith(b"["):
        return False
    line = _first_line(text)
    if not text[len(line) :].strip(_SPACE):
        return True
    try:  # a whole array in the first line, and more after it: lines that are arrays
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False


def _first_line(head: bytes) -> bytes:
    return head.removeprefix(codecs.BOM_UTF8).lstrip(_SPACE).partition(b"\n")[0]
