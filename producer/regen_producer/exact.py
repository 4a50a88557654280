"""JSON in and out without a changed value.

orjson is fast and alters or refuses what the standard library reads as it stands: integers beyond
64 bits become floats; NaN, Infinity and lone surrogates are refused. So orjson reads first, and
the rows in which that could matter are read again by ``json``.
"""

import json
import math
from typing import Any, Final

import orjson

from regen_producer import rejection

DEPTH_MAX: Final = 100
"""Levels of nesting that are written; orjson itself stops at 254."""

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
_LONG: Final = float(1 << 63)
_DIGITS_MAX: Final = 4_000


def decode(raw: bytes) -> Any:
    """The value of one row.

    Raises :class:`rejection.RejectedRowError` (``invalid_utf8``, ``invalid_json``).
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _decode_slowly(raw)
    return _decode_slowly(raw) if _has_long_number(value) else value


def _decode_slowly(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as cause:
        detail = f"{cause.reason} (byte {cause.start})"
        raise rejection.RejectedRowError(rejection.INVALID_UTF8, detail) from cause
    try:
        return _parse_slowly(text)
    except ValueError as cause:
        raise rejection.RejectedRowError(rejection.INVALID_JSON, complaint(cause)) from cause


def parse(text: str) -> Any:
    """The value of JSON that stands in a string. Raises :class:`ValueError`."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _parse_slowly(text)
    return _parse_slowly(text) if _has_long_number(value) else value


def _parse_slowly(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as cause:
        raise ValueError("nested too deeply") from cause


def complaint(error: BaseException) -> str:
    """What a JSON reader did not like, in a few words."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (character {error.pos})"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def _has_long_number(value: Any) -> bool:
    """Whether orjson may have made a float of an integer beyond 64 bits."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is dict:
            stack.extend(item.values())
        elif kind is list:
            stack.extend(item)
        elif kind is float and not -_LONG < item < _LONG:
            return True
    return False


def dumps(value: Any) -> bytes:
    """Strict JSON of any JSON value; what strict JSON can't hold is written as :func:`strict`."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(strict(value))


def strict(value: Any, depth: int = 0) -> Any:
    """The value with integers beyond 64 bits as text, NaN and Infinity as null, and lone
    surrogates as their escapes (``\\ud83d``, six visible characters)."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if _INT_MIN <= value <= _INT_MAX else _digits(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= DEPTH_MAX:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {strict(key): strict(item, depth + 1) for key, item in value.items()}
    return [strict(item, depth + 1) for item in value]


def _digits(value: int) -> str:
    return str(value) if abs(value) < 10**_DIGITS_MAX else hex(value)


def is_writable(text: str) -> bool:
    """Whether the text is Unicode that UTF-8 can carry: no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
