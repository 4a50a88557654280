"""An engine: a server that answers prompts, spoken to over HTTP."""

import asyncio
from enum import Enum
from typing import Any, Final

import orjson

from regen_common import engines, errors, log
from regen_common.clock import Clock, SystemClock
from regen_consumer.engine import facts, faults, progress
from regen_consumer.engine.answer import HTTP_OK, Response
from regen_consumer.engine.facts import Facts
from regen_consumer.engine.faults import Fault
from regen_consumer.engine.http import Http

HEALTH_S_MAX: Final = 25.0
"""SGLang's health check generates a token: a second or more, and it gives up after 20 s itself."""

PAGE_S_MAX: Final = 25.0
METRICS_S_MAX: Final = 5.0
ABORT_S_MAX: Final = 5.0
CLOCK: Final[Clock] = SystemClock()
_COMPLETIONS: Final = "/v1/chat/completions"
_NOT_THERE: Final = (404, 405, 501)
_REFUSED: Final = (401, 403)


class Health(Enum):
    """What a health check shows."""

    WELL = "well"
    REFUSING = "refusing"  # it is there and takes nothing: loading, or about to end
    DOWN = "down"  # no connection
    UNSURE = "unsure"  # no answer in time: under load that may happen while work goes on


class Engine:
    """One server. ``kind`` is ``auto`` until :meth:`facts` has found out. Times in seconds."""

    def __init__(
        self, url: str, *, kind: str = "auto", api_key: str | None = None, clock: Clock = CLOCK
    ) -> None:
        """Raises :class:`regen_common.errors.UsageError` for what can't be a server's URL."""
        engines.check_kind(kind)
        self.url = url.rstrip("/")
        self.kind = kind
        self._clock = clock
        self._http = Http(engines.base_of(self.url), _headers(api_key))
        log.add_secret(api_key)

    async def complete(self, body: bytes, *, rid: str) -> Response:
        """Ask, and wait as long as the engine works on it; there is no time limit.

        Cancelled, the connection closes, which aborts the request on the engine. Raises
        :class:`Fault` where there is no response; a refusal is a response.
        """
        return await self._post(_COMPLETIONS, body, rid=rid)

    async def health(self) -> Health:
        """Whether it would take work, by its own word. Takes up to HEALTH_S_MAX."""
        try:
            async with asyncio.timeout(HEALTH_S_MAX):
                response = await self._get("/health")
                if response.status in _NOT_THERE:
                    response = await self._get("/v1/models")
        except TimeoutError:
            return Health.UNSURE
        except Fault:
            return Health.DOWN
        # an engine that wants another key is there all the same; its preflight says so
        return Health.WELL if response.status < 500 else Health.REFUSING  # noqa: PLR2004

    async def facts(self) -> Facts:
        """What it says of itself; settles ``kind``.

        Raises :class:`Fault`, with blame SETUP where no such server is at this URL.
        """
        server_info = None
        if self.kind != "openai":
            server_info = await self._page("/server_info") or await self._page("/get_server_info")
        models = await self._page("/v1/models")
        if facts.is_sglang(server_info):
            assert isinstance(server_info, dict)
            model_info = await self._page("/model_info") or await self._page("/get_model_info")
            found = facts.of_sglang(server_info, model_info, models)
        elif self.kind == "sglang":
            raise Fault("wrong_url", f"{self.url} is no SGLang; try --engine-kind openai")
        else:
            props = await self._page("/props")
            version = None if props else await self._page("/version")
            found = facts.of_openai(models, props, version)
        if not found.models:
            raise Fault("wrong_url", f"{self.url}/v1/models names no model; is --engine right?")
        self.kind = found.kind
        return found

    async def progress(self) -> progress.Progress | None:
        """How far it has come; None where it does not show it, or not now."""
        try:
            async with asyncio.timeout(METRICS_S_MAX):
                response = await self._get("/metrics")
                if response.status == HTTP_OK:
                    found = progress.of_metrics(response.body.decode("utf-8", "replace"))
                    if found is not None:
                        return found
                if self.kind == "sglang":
                    return progress.of_loads(await self._page("/v1/loads"))
        except (TimeoutError, Fault) as why:
            log.debug("progress_unknown", engine=self.url, why=str(why) or "no answer in time")
        return None

    async def tokens(self) -> int | None:
        """The sum of its token counters; None where it shows none."""
        found = await self.progress()
        return found.tokens if found else None

    async def abort(self, rid: str) -> None:
        """Tell SGLang to give a request up; its answer then says so. Others have no such call."""
        if self.kind != "sglang":
            return
        try:
            async with asyncio.timeout(ABORT_S_MAX):
                await self._post("/abort_request", orjson.dumps({"rid": rid}), rid=rid)
        except (TimeoutError, Fault) as why:
            log.warning("abort_failed", engine=self.url, rid=rid, why=str(why) or "no answer")

    async def close(self) -> None:
        """Close all connections; what is under way is cut."""
        await self._http.close()

    async def _page(self, path: str) -> Any:
        """The JSON of a page; None where there is no such page.

        Raises :class:`Fault` where access is refused or the server is in trouble.
        """
        try:
            async with asyncio.timeout(PAGE_S_MAX):
                response = await self._get(path)
        except TimeoutError as error:
            raise Fault("stalled", f"no answer to {path} within {PAGE_S_MAX:.0f} s") from error
        refused = response.status in _REFUSED
        if refused or (response.status >= 500 and response.status not in _NOT_THERE):  # noqa: PLR2004
            raise faults.of_refusal(response.status, response.headers, response.body)
        if response.status != HTTP_OK:
            return None
        try:
            return orjson.loads(response.body)
        except orjson.JSONDecodeError:
            return None

    async def _get(self, path: str) -> Response:
        return await self._send("GET", path)

    async def _post(self, path: str, body: bytes, *, rid: str) -> Response:
        return await self._send("POST", path, body=body, rid=rid)

    async def _send(
        self, method: str, path: str, *, body: bytes | None = None, rid: str | None = None
    ) -> Response:
        began_s = self._clock.monotonic_s()  # uvloop's own time has whole milliseconds only
        message = await self._http.send(method, path, body=body, rid=rid)
        latency_s = self._clock.monotonic_s() - began_s
        return Response(message.status, message.headers, message.body, latency_s)


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {
        "user-agent": "regen",
        "accept": "application/json, text/plain",
        "accept-encoding": "identity",
    }
    if api_key is None:
        return headers
    if not engines.is_plain(api_key):
        raise errors.UsageError("--api-key: a key has neither white space nor other than ASCII")
    return headers | {"authorization": f"Bearer {api_key}"}
