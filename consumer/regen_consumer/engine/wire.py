"""HTTP/1.1 responses out of the bytes of a connection, in whatever portions they come. Pure."""

import re
from typing import Final, NamedTuple

HEAD_BYTES_MAX: Final = 64 << 10
BODY_BYTES_MAX: Final = 64 << 20
"""An answer of 100,000 tokens is about 400 KB; with log-probabilities some MB."""

_CHUNK_LINE_BYTES_MAX: Final = 1 << 10
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n]*)?")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_BODILESS: Final = frozenset({204, 304})


class NotHttpError(Exception):
    """The bytes are no HTTP/1.1 response, or one that is larger than allowed."""


class Message(NamedTuple):
    """A whole response. ``headers`` have lower-case names; ``reusable``: so is the connection."""

    status: int
    headers: dict[str, str]
    body: bytes
    reusable: bool


class Reader:
    """Reads one response. Feed it until it returns the message."""

    def __init__(self, *, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._body_bytes_max = body_bytes_max
        self._buffer = bytearray()
        self._status = 0
        self._headers: dict[str, str] | None = None
        self._persistent = False
        self._length: int | None = None
        self._chunks: bytearray | None = None
        self.begun = False

    def feed(self, data: bytes) -> Message | None:
        """The message, once it is whole.

        Raises :class:`NotHttpError`; nothing of the connection can be understood after that.
        """
        self.begun = True
        self._buffer += data
        while self._headers is None:
            if not self._read_head():
                return None
        if self._chunks is not None:
            return self._read_chunks()
        if self._length is None:
            self._check_size(len(self._buffer))
            return None
        if len(self._buffer) < self._length:
            return None
        body = bytes(memoryview(self._buffer)[: self._length])
        return self._message(body, rest=len(self._buffer) > self._length)

    def end(self) -> Message | None:
        """The connection has ended. The message, if it was to last until then."""
        if self._headers is None or self._chunks is not None or self._length is not None:
            return None
        return self._message(bytes(self._buffer), rest=True)

    def _message(self, body: bytes, *, rest: bool) -> Message:
        assert self._headers is not None
        return Message(self._status, self._headers, body, self._persistent and not rest)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES_MAX:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise NotHttpError("the head of the response does not end")
            if not b"HTTP/1.".startswith(bytes(self._buffer[:7])):
                raise NotHttpError(f"not HTTP/1.1: {bytes(self._buffer[:40])!r}")
            return False
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[: end + 4]
        line = _STATUS_LINE.fullmatch(first)
        if line is None:
            raise NotHttpError(f"not HTTP/1.1: {first[:40]!r}")
        self._status = int(line[2])
        headers = _headers_of(lines)
        if self._status // 100 == 1:
            return True  # an interim response: the real one follows
        self._frame(headers, is_1_1=line[1] == b"1")
        self._headers = headers
        return True

    def _frame(self, headers: dict[str, str], *, is_1_1: bool) -> None:
        """How long is the body, and does the connection live on?"""
        connection = headers.get("connection", "").lower()
        self._persistent = "close" not in connection and (is_1_1 or "keep-alive" in connection)
        coding = headers.get("transfer-encoding", "").lower()
        if self._status in _BODILESS:
            self._length = 0
        elif coding == "chunked":
            self._chunks = bytearray()
        elif coding:
            raise NotHttpError(f"unknown transfer-encoding {coding[:40]!r}")
        elif "content-length" in headers:
            self._length = _length_of(headers["content-length"])
            self._check_size(self._length)

    def _read_chunks(self) -> Message | None:
        assert self._chunks is not None
        while (end := self._buffer.find(b"\r\n")) >= 0:
            size = _chunk_size(bytes(self._buffer[:end]))
            if size == 0:
                return self._read_trailer(end)
            if len(self._buffer) < end + 2 + size + 2:
                self._check_size(len(self._chunks) + size)
                return None
            self._chunks += self._buffer[end + 2 : end + 2 + size]
            if self._buffer[end + 2 + size : end + 4 + size] != b"\r\n":
                raise NotHttpError("a chunk does not end where it says")
            del self._buffer[: end + 4 + size]
            self._check_size(len(self._chunks))
        if len(self._buffer) > _CHUNK_LINE_BYTES_MAX:
            raise NotHttpError("a chunk without a size")
        return None

    def _read_trailer(self, end: int) -> Message | None:
        assert self._chunks is not None
        if self._buffer[end + 2 : end + 4] == b"\r\n":
            done = end + 4
        else:
            done = self._buffer.find(b"\r\n\r\n", end) + 4
        if done < end + 4:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise NotHttpError("the trailer of the response does not end")
            return None
        return self._message(bytes(self._chunks), rest=len(self._buffer) > done)

    def _check_size(self, size: int) -> None:
        if size > self._body_bytes_max:
            raise NotHttpError(f"an answer of more than {self._body_bytes_max >> 20} MiB")


def _headers_of(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise NotHttpError(f"not a header: {line[:40]!r}")
        name, value = match[1].decode().lower(), match[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _length_of(text: str) -> int:
    """A repeated header may say the same twice."""
    lengths = {part.strip() for part in text.split(",")}
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit()):
        raise NotHttpError(f"content-length {text[:40]!r}")
    return int(length)


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{1,16}", digits):
        raise NotHttpError(f"not the size of a chunk: {line[:40]!r}")
    return int(digits, 16)
