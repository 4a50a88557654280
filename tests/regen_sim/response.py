"""A response, and the bytes it is on the wire."""

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson

JSON: Final = "application/json"
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_date: tuple[int, str] = (0, "")


class Response(NamedTuple):
    """``content_type`` None sends no such header, as SGLang does with empty bodies."""

    status: int
    body: bytes = b""
    content_type: str | None = JSON
    headers: tuple[tuple[str, str], ...] = ()


def json(status: int, body: Any) -> Response:
    return Response(status, orjson.dumps(body))


def empty(status: int) -> Response:
    return Response(status, b"", None)


def head(
    response: Response, *, server: str, close: bool = False, length: int | None = None
) -> bytes:
    """Status line and headers; ``length`` lies about the body's size."""
    size = len(response.body) if length is None else length
    lines = (
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Unknown')}\r\n"
        f"date: {_now()}\r\nserver: {server}\r\ncontent-length: {size}\r\n"
    )
    if response.content_type is not None:
        lines += f"content-type: {response.content_type}\r\n"
    for name, value in response.headers:
        lines += f"{name}: {value}\r\n"
    return (lines + ("connection: close\r\n\r\n" if close else "\r\n")).encode("latin-1")


def _now() -> str:
    global _date  # noqa: PLW0603 - a cache of this second's date, made once per second
    second = int(time.time())
    if _date[0] != second:
        _date = (second, formatdate(second, usegmt=True))
    return _date[1]
