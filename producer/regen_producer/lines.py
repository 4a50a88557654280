"""JSON lines: one row per line, and ``\\n`` is the only thing that ends one."""

import codecs
from collections.abc import Iterator
from typing import BinaryIO, Final

from regen_producer import exact, raw, rejection, structure

LINE_BYTES_MAX: Final = 64 << 20
"""Longer lines are rejected unread, so that memory stays flat."""


def read(stream: BinaryIO, name: str) -> Iterator[raw.RawRow | raw.Cut]:
    """The rows of a stream that stands at its beginning. Blank lines are passed over."""
    row, line_number, at = 0, 0, 0
    while line := stream.readline(LINE_BYTES_MAX):
        begins, at = at, at + len(line)
        line_number += 1
        if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
            at += _skip_line(stream)
            detail = f"line {line_number}: longer than {LINE_BYTES_MAX:,} bytes"
            yield raw.RawRow(row, None, rejection.INVALID_JSON, detail)
        elif (text := line.removeprefix(codecs.BOM_UTF8)) and not text.isspace():
            try:
                yield raw.RawRow(row, exact.decode(text))
            except rejection.RejectedRowError as why:
                if where := _cut(line):
                    yield raw.Cut(name, row, begins, at, where)
                    return
                yield raw.RawRow(row, None, why.error, f"line {line_number}: {why.detail}")
        else:
            continue
        row += 1


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while piece := stream.readline(1 << 20):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped


def _cut(line: bytes) -> str | None:
    """Where the last line ends too early; None if it was unreadable for another reason."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff \t\r")
    if text.endswith("\n") or not text.startswith(("{", "[")):
        return None
    state = structure.extent(text, 0).state
    return structure.WHERE[state] if state in ("string", "open") else None
