"""Connections to one engine: HTTP/1.1 over asyncio, one request at a time on each.

Our own, because of two things that the libraries do not give together. A cancelled request must
close its connection at once: that is how an engine learns that nobody waits any more, and
pyreqwest 0.15 lets it run on. And a request must cost little: this takes 0.045 ms of CPU, aiohttp
0.1 to 0.2, httpx 4 and more. It has only what an engine needs: no redirects, no proxies, no
cookies, no compression.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from regen_consumer.engine import wire
from regen_consumer.engine.faults import Fault

CONNECT_S_MAX: Final = 10.0
IDLE_S_MAX: Final = 4.0
"""uvicorn and llama.cpp close a connection that was idle for 5 s."""

STALE_IDLE_S_MIN: Final = 0.5
STALE_WITHIN_S: Final = 0.1
"""A connection that idled and ends at once, without one byte, when the next request comes was
being closed at that moment: the engine never saw the request, and it is sent again. Under load no
connection idles, and a connection that ends is a cut."""

KEEPALIVE_IDLE_S: Final = 60
KEEPALIVE_INTERVAL_S: Final = 15
KEEPALIVE_PROBES: Final = 4
"""TCP's own: a machine that lost power is noticed after two minutes, an answer may take hours."""


class Address(NamedTuple):
    """Where an engine listens. ``tls``: as https."""

    host: str
    port: int
    tls: bool


class _LostError(Exception):
    """The connection ended before the response was whole."""

    def __init__(self, *, begun: bool, cause: Exception | None) -> None:
        super().__init__("connection lost")
        self.begun = begun
        self.__cause__ = cause


class _Connection(asyncio.Protocol):
    """One connection. Between two requests it waits for nothing but its end."""

    def __init__(self, ended: Callable[["_Connection"], None]) -> None:
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._reader = wire.Reader()
        self._waiter: asyncio.Future[wire.Message] | None = None
        self._lost = False
        self.idle_since_s = 0.0
        self.used = False

    def exchange(self, head: bytes, body: bytes) -> asyncio.Future[wire.Message]:
        """Send a request; the future gets its response, or _LostError or NotHttpError."""
        assert self._transport is not None
        self._reader = wire.Reader()
        self._waiter = asyncio.get_running_loop().create_future()
        if self._lost:  # just now, before anybody could look
            self._waiter.set_exception(_LostError(begun=False, cause=None))
        else:
            self._transport.writelines((head, body))
        return self._waiter

    def abort(self) -> None:
        """Close now, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def quiet(self) -> bool:
        """Is it open, with nothing on its way out?"""
        transport = self._transport
        return (
            transport is not None
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by type
        _keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.abort()  # nobody asked
            return
        try:
            message = self._reader.feed(data)
        except wire.NotHttpError as error:
            self._waiter.set_exception(error)
            self.abort()
            return
        if message is not None:
            self._waiter.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._ended(self)
        if self._waiter is None or self._waiter.done():
            return
        if exc is None and (message := self._reader.end()) is not None:
            self._waiter.set_result(message)
        else:
            self._waiter.set_exception(_LostError(begun=self._reader.begun, cause=exc))


class Pool:
    """As many connections as there are requests at once. Belongs to one event loop."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._tls = ssl.create_default_context() if address.tls else None
        self._open: set[_Connection] = set()
        self._idle: dict[_Connection, None] = {}  # the one used last stands last

    async def send(self, head: bytes, body: bytes = b"") -> wire.Message:
        """One request's whole response. Cancelled: its connection is closed at once.

        Raises :class:`Fault`: ``unreachable``, ``cut``, or ``invalid_answer`` for what is no HTTP.
        """
        connection = self._take() or await self._connect()
        began_s = time.monotonic()
        idled_s = began_s - connection.idle_since_s if connection.used else 0.0
        try:
            return await self._exchange(connection, head, body)
        except _LostError as lost:
            at_once = time.monotonic() - began_s <= STALE_WITHIN_S
            if lost.begun or not at_once or idled_s < STALE_IDLE_S_MIN:
                raise _cut(lost) from lost
        return await self._send_again(head, body)

    def close(self) -> None:
        """Close all connections; requests under way are cut."""
        for connection in list(self._open):
            connection.abort()

    async def _send_again(self, head: bytes, body: bytes) -> wire.Message:
        try:
            return await self._exchange(await self._connect(), head, body)
        except _LostError as lost:
            raise _cut(lost) from lost
        except Fault as gone:
            if gone.klass != "unreachable":
                raise
            # it died in between, maybe of this request: not a mere refusal
            raise Fault("cut", f"the connection was closed, and now: {gone}") from gone

    async def _exchange(self, connection: _Connection, head: bytes, body: bytes) -> wire.Message:
        try:
            message = await connection.exchange(head, body)
        except wire.NotHttpError as error:
            raise Fault("invalid_answer", str(error)) from error
        except BaseException:
            connection.abort()
            raise
        if message.reusable and connection.quiet:
            self._give(connection)
        else:
            connection.abort()
        return message

    def _take(self) -> _Connection | None:
        """The idle connection that was used last, if there is one that is not too old."""
        self._drop_old()
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.quiet:
                return connection
            connection.abort()
        return None

    def _give(self, connection: _Connection) -> None:
        connection.used = True
        connection.idle_since_s = time.monotonic()
        self._idle[connection] = None

    def _drop_old(self) -> None:
        """Close what nobody has needed for long; the oldest stand first."""
        limit_s = time.monotonic() - IDLE_S_MAX
        while self._idle:
            oldest = next(iter(self._idle))
            if oldest.idle_since_s > limit_s:
                return
            del self._idle[oldest]
            oldest.abort()

    def _ended(self, connection: _Connection) -> None:
        self._open.discard(connection)
        self._idle.pop(connection, None)

    async def _connect(self) -> _Connection:
        host, port, _ = self._address
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._ended), host, port, ssl=self._tls
                )
        except TimeoutError as error:
            raise Fault("unreachable", f"{host}:{port} does not answer") from error
        except ssl.SSLCertVerificationError as error:
            raise Fault("wrong_url", f"{host}:{port}: {error}") from error
        except OSError as error:  # refused, no route, no such name
            raise Fault("unreachable", f"{host}:{port}: {error}") from error
        self._open.add(connection)
        return connection


def _cut(lost: _LostError) -> Fault:
    why = lost.__cause__ or "closed"
    where = "in the middle of the answer" if lost.begun else "before the answer"
    return Fault("cut", f"the connection broke {where} ({why})")


def _keep_alive(sock: socket.socket | None) -> None:
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),  # not on every system
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
