"""The server: routes, the key, and its end."""

import asyncio
import contextlib
import signal
import traceback
from collections.abc import Callable
from typing import Final

from regen_sim import control, options, pages, refusals, response, serving, state, wire

_OPEN_PATHS: Final = ("/health", "/metrics", "/_sim")
_LAST_WORDS_S: Final = 1.0

Handler = Callable[[wire.Exchange], response.Response | None]


class Server:
    """One simulation. ``run`` returns when it has ended."""

    def __init__(self, settings: options.Options) -> None:
        self._state = state.make(settings)
        self._ended = asyncio.Event()
        server = "uvicorn" if settings.is_sglang else "llama.cpp"
        self._hub = wire.Hub(
            self._handle, self._state.seen, server=server, keep_alive_s=settings.keep_alive_s
        )
        self._serving = serving.Serving(self._state, server, self._end_if_finished)
        self._pages = pages.Pages(self._state)
        self._routes = self._make_routes()

    async def run(self, ready: Callable[[int], None]) -> None:
        """Serve until told to end and nothing is left to do; ``ready`` gets the port."""
        settings = self._state.settings
        await asyncio.sleep(settings.load_s)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._drain)
        listener = await loop.create_server(
            self._hub.connect, settings.host, settings.port, backlog=1024
        )
        sweeping = asyncio.create_task(self._hub.sweep(settings.parent_pid))
        ready(listener.sockets[0].getsockname()[1])
        await self._ended.wait()
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        listener.close()
        for connection in list(self._hub.connections):
            connection.close()
        with contextlib.suppress(TimeoutError):  # the transports still write what they hold
            await asyncio.wait_for(self._hub.empty.wait(), _LAST_WORDS_S)

    def _handle(self, exchange: wire.Exchange) -> None:
        request = exchange.request
        self._state.seen.paths[request.path] += 1
        try:
            answer = self._refused(request) or self._answered(exchange)
        except Exception:  # noqa: BLE001 - as uvicorn does: whatever a request breaks is a 500
            traceback.print_exc()
            answer = response.Response(500, b"Internal Server Error", "text/plain; charset=utf-8")
        if answer is not None:
            self._serving.send(exchange, answer)

    def _refused(self, request: wire.Request) -> response.Response | None:
        settings = self._state.settings
        if settings.api_key is None or request.path.startswith(_OPEN_PATHS):
            return None
        if request.headers.get("authorization") == f"Bearer {settings.api_key}":
            return None
        if settings.is_sglang:
            return refusals.unauthorized()
        return refusals.llama(401, "Invalid API Key", "authentication_error")

    def _answered(self, exchange: wire.Exchange) -> response.Response | None:
        request = exchange.request
        handler = self._routes.get((request.method, request.path))
        if handler is not None:
            return handler(exchange)
        if not self._state.settings.is_sglang:
            return refusals.llama(404, "File Not Found", "not_found_error")
        if request.method == "GET" and request.path.startswith("/v1/models/"):
            return self._pages.model(request.path.removeprefix("/v1/models/"))
        allowed = sorted(method for method, path in self._routes if path == request.path)
        return refusals.method_not_allowed(", ".join(allowed)) if allowed else refusals.not_found()

    def _make_routes(self) -> dict[tuple[str, str], Handler]:
        routes: dict[tuple[str, str], Handler] = {}
        for part in (self._pages, self._serving, control.Control(self._state)):
            routes |= part.routes()
        return routes

    def _drain(self) -> None:
        """SIGTERM or SIGINT: unhealthy from now on, and gone once nothing runs."""
        self._state.draining = True
        self._end_if_finished()

    def _end_if_finished(self) -> None:
        if self._state.finished:
            self._ended.set()
