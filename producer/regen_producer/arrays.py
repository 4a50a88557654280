"""A JSON array as rows, one element at a time: memory stays flat however long the file is.

A bad element is one rejected row, and the next element is looked for: by the brackets where they
match, else by the next object that looks like a row.
"""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from regen_common import errors
from regen_producer import conversation, exact, raw, rejection, structure, window

_DECODER: Final = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n\ufeff]*+")
_SEPARATORS = re.compile(r"[ \t\r\n,]*+")
_BARE = re.compile(r"[^,\]\n]++")
_OBJECT_START = re.compile(r"[,\n]\s*+(?=\{)")
_FIRST_KEY = re.compile(r'\{\s*+("[^"\\\n]*+")\s*+:')
_EDGE_CHARS: Final = 16
"""What stands so close to the end of the window may look otherwise with more of the text."""

CANDIDATES_MAX: Final = 10_000


def read(stream: BinaryIO, name: str) -> Iterator[raw.RawRow | raw.Cut]:
    """The elements of the array, or arrays, in a stream that stands at its beginning.

    Raises :class:`regen_common.errors.InputError` for an element that never ends.
    """
    win = window.Window(stream)
    row = 0
    while _opened(win):
        while _at_element(win):
            found = _element(win, row, name)
            yield found
            if isinstance(found, raw.Cut):
                return
            row += 1
        if win.at == len(win.text):
            ends = win.byte_position(win.at)
            yield raw.Cut(name, row, None, ends, "before the closing bracket of the array")
            return
        win.at += 1
    if win.at < len(win.text):
        detail = f"something after the end of the array, at byte {win.byte_position(win.at):,}"
        yield raw.RawRow(row, None, rejection.INVALID_JSON, detail)


def _opened(win: window.Window) -> bool:
    """Step over the bracket that opens an array; False when there is none."""
    _skip(win, _SPACE)
    if not win.text.startswith("[", win.at):
        return False
    win.at += 1
    return True


def _at_element(win: window.Window) -> bool:
    """Step to the next element; False at the closing bracket, or at the end of the file."""
    _skip(win, _SEPARATORS)
    return win.at < len(win.text) and win.text[win.at] != "]"


def _skip(win: window.Window, pattern: re.Pattern[str]) -> None:
    while True:
        found = pattern.match(win.text, win.at)
        win.at = found.end() if found else win.at
        if win.at < len(win.text) or not win.grow():
            return


def _element(win: window.Window, row: int, name: str) -> raw.RawRow | raw.Cut:
    """The element at the cursor, which moves past it."""
    while True:
        try:
            value, end = _DECODER.raw_decode(win.text, win.at)
        except (ValueError, RecursionError) as error:
            early = _may_go_on(win, error)
            if early and win.grow():
                continue
            after = _after_bad(win, is_cut=early and win.at_end)
            if after is not None:
                return _bad(win, row, after, error)
            if win.grow():
                continue
            return _end_of_file(win, row, name, error)
        if _may_be_longer(value, len(win.text) - end) and win.grow():
            continue
        if not win.is_valid(end):
            return _bad(win, row, end, None)
        win.at = end
        return raw.RawRow(row, value)


def _may_be_longer(value: Any, chars_after: int) -> bool:
    """A number near the window's end may have more digits, a fraction, an exponent (``1.e+``)."""
    return isinstance(value, int | float) and chars_after < _EDGE_CHARS


def _may_go_on(win: window.Window, error: Exception) -> bool:
    """Whether the error may be due to the window's end, not to the element."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if error.msg.startswith("Unterminated string"):
        return True
    return error.pos >= len(win.text) - _EDGE_CHARS


def _after_bad(win: window.Window, *, is_cut: bool) -> int | None:
    """Where to read on after an element that can't be read; None if that is not in the window."""
    if win.text[win.at] not in "{[":
        bare = _BARE.match(win.text, win.at)
        return bare.end() if bare and bare.end() < len(win.text) else None
    end = structure.extent(win.text, win.at).end
    # an element that lacks a quote or a bracket seems to go on over the rows that follow it
    following = None if is_cut else _next_row(win, end)
    return end if following is None else following


def _next_row(win: window.Window, end: int | None) -> int | None:
    """The next object that can be read, looks like a row, and begins as the bad one does."""
    bad = _FIRST_KEY.match(win.text, win.at)
    candidates = _OBJECT_START.finditer(win.text, win.at + 1, len(win.text) if end is None else end)
    for found in itertools.islice(candidates, CANDIDATES_MAX):
        first = _FIRST_KEY.match(win.text, found.end())
        if first is None or (bad is not None and first[1] != bad[1]):
            continue
        try:
            value, _ = _DECODER.raw_decode(win.text, found.end())
        except (ValueError, RecursionError):
            continue
        if conversation.has_column(value):
            return found.end()
    return None


def _bad(win: window.Window, row: int, end: int, error: Exception | None) -> raw.RawRow:
    begins, valid = win.byte_position(win.at), win.is_valid(end)
    kind = rejection.INVALID_JSON if valid else rejection.INVALID_UTF8
    detail = f"the row that begins at byte {begins:,}"
    if valid and isinstance(error, json.JSONDecodeError):
        detail += f": {error.msg} (character {error.pos - win.at})"
    elif valid and error is not None:
        detail += f": {exact.complaint(error)}"
    win.at = end
    return raw.RawRow(row, None, kind, detail)


def _end_of_file(win: window.Window, row: int, name: str, error: Exception) -> raw.RawRow | raw.Cut:
    begins = win.byte_position(win.at)
    if not win.at_end:
        raise errors.InputError(
            f"{name}: the row at byte {begins:,} goes on for more than {window.CHARS_MAX:,} "
            "characters, or its brackets never close; mend the file there"
        )
    first = win.text[win.at]
    state = structure.extent(win.text, win.at).state if first in "{[" else "open"
    if state == "broken":
        # nothing that follows looks like a row; the last bracket is taken for the array's own
        last = win.text.rfind("]", win.at)
        return _bad(win, row, last if last > win.at else len(win.text), error)
    ends = win.byte_position(len(win.text))
    return raw.Cut(
        name, row, begins, ends, "inside a string" if first == '"' else structure.WHERE[state]
    )
