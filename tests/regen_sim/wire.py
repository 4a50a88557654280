"""HTTP/1.1 as far as clients of an inference server use it, on asyncio's protocols.

A request at a time per connection; what a client sends ahead waits its turn. Bodies come with a
length or chunked. Connections that have been idle too long are closed, as uvicorn does.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from regen_sim import response, seen

_HEAD_BYTES_MAX: Final = 64 * 1024
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_SWEEP_S: Final = 0.2


class Request(NamedTuple):
    """Header names in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


class BadRequestError(Exception):
    """No HTTP that this server reads."""


class Exchange:
    """A request and the place for its answer. Exactly one of ``send`` and ``cut`` ends it."""

    __slots__ = ("_connection", "on_lost", "request")

    def __init__(self, connection: "Connection", request: Request) -> None:
        self.request = request
        self.on_lost: Callable[[], None] | None = None
        self._connection: Connection | None = connection

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def send(self, answer: response.Response) -> None:
        """Answer and be ready for the next request; nothing when the client has gone."""
        if self._connection is not None:
            self._connection.answer(answer)

    def send_part(self, data: bytes) -> None:
        """Bytes as they are, without an end to the exchange."""
        if self._connection is not None:
            self._connection.write(data)

    def cut(self, *, reset: bool = False) -> None:
        """Close the connection, after what was sent; ``reset`` throws that away."""
        if self._connection is not None:
            self._connection.close(reset=reset)

    def lose(self) -> None:
        """The connection is gone, or the exchange is over."""
        self._connection = None


class Hub:
    """All connections of a server, and the sweep that closes the idle ones."""

    def __init__(
        self,
        handle: Callable[[Exchange], None],
        counts: seen.Seen,
        *,
        server: str,
        keep_alive_s: float,
    ) -> None:
        self.handle = handle
        self.counts = counts
        self.server = server
        self.connections: set[Connection] = set()
        self.empty = asyncio.Event()
        self.empty.set()
        self._keep_alive_s = keep_alive_s

    def connect(self) -> "Connection":
        return Connection(self)

    async def sweep(self, parent_pid: int | None) -> None:
        """For ever, or until the process that started this one is gone."""
        while parent_pid is None or os.getppid() == parent_pid:
            await asyncio.sleep(min(_SWEEP_S, max(0.01, self._keep_alive_s / 4)))
            oldest_s = time.monotonic() - self._keep_alive_s
            for connection in [c for c in self.connections if c.idle_since_s < oldest_s]:
                connection.close()
        os._exit(1)  # nobody is left to read an answer, or to end this process


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, hub: Hub) -> None:
        self.idle_since_s = time.monotonic()
        self._hub = hub
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._exchange: Exchange | None = None
        self._reading = False
        self._continued = False
        self._closes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._hub.connections.add(self)
        self._hub.empty.clear()
        self._hub.counts.connections_opened += 1
        self._hub.counts.connections_open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._hub.connections.discard(self)
        self._hub.counts.connections_open -= 1
        if not self._hub.connections:
            self._hub.empty.set()
        self._transport = None
        if self._exchange is not None:
            self._exchange.lose()
            if self._exchange.on_lost is not None:
                self._exchange.on_lost()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._read()

    def answer(self, answer: response.Response) -> None:
        head = response.head(answer, server=self._hub.server, close=self._closes)
        self.write(head + answer.body)
        self._over()
        if self._closes:
            self.close()
        elif self._buffer:
            self._read()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def close(self, *, reset: bool = False) -> None:
        if self._exchange is not None:
            self._over()
        if self._transport is not None:
            if reset:
                self._transport.abort()
            else:
                self._transport.close()

    def _over(self) -> None:
        if self._exchange is not None:
            self._exchange.lose()
        self._exchange = None
        self._continued = False
        self.idle_since_s = time.monotonic()

    def _read(self) -> None:
        """Hand out one whole request after the other, unless one is being answered."""
        if self._reading:
            return
        self._reading = True
        try:
            while self._exchange is None and self._transport is not None and self._buffer:
                request = self._take()
                if request is None:
                    break
                self._dispatch(request)
        except BadRequestError:
            self._closes = True
            self.answer(response.Response(400, b"Invalid HTTP request received.", "text/plain"))
        finally:
            self._reading = False

    def _dispatch(self, request: Request) -> None:
        self.idle_since_s = float("inf")
        self._closes = request.headers.get("connection", "").lower() == "close"
        self._exchange = Exchange(self, request)
        self._hub.handle(self._exchange)

    def _take(self) -> Request | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_BYTES_MAX:
                raise BadRequestError
            return None
        method, target, headers = _head(bytes(self._buffer[:end]).decode("latin-1"))
        if headers.get("expect", "").lower() == "100-continue" and not self._continued:
            self._continued = True
            self.write(_CONTINUE)
        if headers.get("transfer-encoding", "").lower() == "chunked":
            whole = _chunked(self._buffer, end + 4)
        else:
            whole = _sized(self._buffer, end + 4, headers.get("content-length", "0"))
        if whole is None:
            return None
        body, used = whole
        del self._buffer[:used]
        path, _, query = target.partition("?")
        return Request(method, path, query, headers, body)


def _head(text: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = text.split("\r\n")
    try:
        method, target, _ = first.split(" ")
    except ValueError:
        raise BadRequestError from None
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return method, target, headers


def _sized(buffer: bytearray, start: int, length: str) -> tuple[bytes, int] | None:
    if not length.isdigit():
        raise BadRequestError
    end = start + int(length)
    return (bytes(buffer[start:end]), end) if len(buffer) >= end else None


def _chunked(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    """The body and where it ends, or None while a part is missing."""
    body = bytearray()
    while (line_end := buffer.find(b"\r\n", start)) >= 0:
        try:
            size = int(bytes(buffer[start:line_end]).partition(b";")[0], 16)
        except ValueError:
            raise BadRequestError from None
        start = line_end + 2
        if len(buffer) < start + size + 2:
            return None
        body += buffer[start : start + size]
        start += size + 2
        if size == 0:
            return bytes(body), start
    return None
