"""The one module that wraps the HTTP library: aiohttp, with its exceptions in our words.

aiohttp, because a cancelled request closes its connection at once, which is how an engine learns
that nobody waits any more (pyreqwest 0.15 lets the request run on until its answer). No time limit
on answers, no proxies, no redirects, no cookies.
"""

import io
import socket
from typing import Final, NamedTuple

import aiohttp
from aiohttp import hdrs

from regen_consumer.engine.faults import Fault

BODY_BYTES_MAX: Final = 64 << 20
"""An answer of 100,000 tokens is about 400 KB; with log-probabilities some MB."""

CONNECT_S_MAX: Final = 10.0
IDLE_S_MAX: Final = 4.0
"""uvicorn and llama.cpp close a connection that was idle for 5 s."""

READ_BUFFER_BYTES: Final = 1 << 18
WHOLE_BYTES_MAX: Final = 1 << 18

KEEPALIVE: Final = (
    ("TCP_KEEPIDLE", 60),  # not on every system
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
)
"""A machine that lost power is noticed after two minutes; an answer may take hours. In seconds."""


class Message(NamedTuple):
    """A whole response. ``headers`` have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes


class Http:
    """Connections to one server, as many as there are requests at once. Of one event loop."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self._base_url = base_url
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, method: str, path: str, *, body: bytes | None = None, rid: str | None = None
    ) -> Message:
        """One request's whole response. Cancelled: its connection is closed at once.

        Raises :class:`Fault`: ``unreachable``, ``cut``, or ``invalid_answer`` for what is no HTTP
        or too large.
        """
        headers: dict[str, str] = {}
        if body is not None:
            headers[hdrs.CONTENT_TYPE] = "application/json"
        if rid is not None:
            headers["x-request-id"] = rid
        try:
            async with self._open().request(
                method,
                self._base_url + path,
                data=_payload(body),
                headers=headers,
                allow_redirects=False,
            ) as response:
                content = await _read(response)
                found = {name.lower(): value for name, value in response.headers.items()}
                return Message(response.status, found, content)
        except aiohttp.ClientConnectorError as error:  # refused, no route, no name, certificate
            raise Fault("unreachable", f"{self._base_url}: {error.os_error or error}") from error
        except aiohttp.ServerTimeoutError as error:
            raise Fault("unreachable", f"{self._base_url} does not answer") from error
        except aiohttp.ClientResponseError as error:
            raise Fault("invalid_answer", f"not HTTP: {error.message}") from error
        except (aiohttp.ClientError, OSError) as error:  # closed, reset, body shorter than said
            raise Fault("cut", f"the connection broke: {error}") from error

    async def close(self) -> None:
        """Close all connections; requests under way are cut."""
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=IDLE_S_MAX,
                socket_factory=_socket,
                use_dns_cache=True,
                ttl_dns_cache=60,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S_MAX),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=READ_BUFFER_BYTES,
                trust_env=False,
            )
        return self._session


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """Large bodies go out in pieces, so that the loop can do other things in between."""
    return io.BytesIO(body) if body is not None and len(body) > WHOLE_BYTES_MAX else body


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body, unless it is too large."""
    if (response.content_length or 0) > BODY_BYTES_MAX:
        response.close()
        raise _too_large()
    if response.content_length is not None:
        return await response.read()
    whole = bytearray()
    async for part in response.content.iter_any():
        whole += part
        if len(whole) > BODY_BYTES_MAX:
            response.close()
            raise _too_large()
    return bytes(whole)


def _too_large() -> Fault:
    return Fault("invalid_answer", f"an answer of more than {BODY_BYTES_MAX >> 20} MiB")


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in KEEPALIVE:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    return made
