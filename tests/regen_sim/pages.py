"""The endpoints that tell about the server: health, models, facts, loads, metrics."""

import asyncio
import functools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from regen_sim import metrics, refusals, response, server_info, state, wire

_PERIOD_S: Final = 2.0
_FORCED: Final = 503

Handler = Callable[[wire.Exchange], response.Response | None]


class Pages:
    """GET endpoints."""

    def __init__(self, shared: state.State) -> None:
        self._state = shared
        self._settings = shared.settings
        self._created = int(time.time())

    def routes(self) -> dict[tuple[str, str], Handler]:
        routes: dict[tuple[str, str], Handler] = {
            ("GET", "/health"): self._health,
            ("GET", "/v1/models"): self._models,
        }
        if not self._settings.is_sglang:
            return routes
        routes |= {
            ("GET", "/"): lambda _: response.json(200, "SGLang is running"),
            ("GET", "/ping"): lambda _: response.empty(200),
            ("GET", "/health_generate"): self._health,
            ("GET", "/model_info"): self._model_info,
            ("GET", "/get_model_info"): self._model_info,
            ("GET", "/server_info"): self._server_info,
            ("GET", "/get_server_info"): self._server_info,
            ("GET", "/v1/loads"): self._loads,
        }
        if not self._settings.is_new:
            routes |= {
                ("GET", "/get_load"): self._load,
                ("GET", "/get_weight_version"): lambda _: _DEPRECATED,
                ("GET", "/weight_version"): lambda _: _DEPRECATED,
            }
        if self._settings.metrics:
            routes["GET", "/metrics"] = self._metrics
        return routes

    def model(self, name: str) -> response.Response:
        """``/v1/models/NAME``."""
        if name == self._settings.model:
            return response.json(200, self._card())
        message = f"The model '{name}' does not exist"
        error = {
            "message": message,
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
        return response.json(404, {"error": error})

    def _health(self, exchange: wire.Exchange) -> response.Response | None:
        box = self._state.box
        if box.server_wide("health_hang"):
            return None
        answer = self._health_now()
        if not self._settings.health_s or answer.status != 200 or self._state.draining:
            return answer
        loop = asyncio.get_running_loop()
        loop.call_later(self._settings.health_s, functools.partial(exchange.send, answer))
        return None

    def _health_now(self) -> response.Response:
        shared = self._state
        status = 200
        if shared.draining or shared.starting or shared.hanging_unhealthy:
            status = 503
        if (down := shared.box.server_wide("health_down")) is not None:
            status = int(down.number("status", _FORCED))
        if (flap := shared.box.server_wide("health_flap")) is not None:
            period_s = flap.number("period_s", _PERIOD_S)
            status = 503 if time.monotonic() % period_s < period_s / 2 else status
        if self._settings.is_sglang:
            return response.empty(status)
        if status == 200:
            return response.json(200, {"status": "ok"})
        return refusals.llama(status, "Loading model", "unavailable_error")

    def _card(self) -> dict[str, Any]:
        return {
            "id": self._settings.model,
            "object": "model",
            "created": self._created,
            "owned_by": "sglang",
            "root": self._settings.model,
            "parent": None,
            "max_model_len": self._settings.context_length,
        }

    def _models(self, exchange: wire.Exchange) -> response.Response:
        if self._settings.is_sglang:
            return response.json(200, {"object": "list", "data": [self._card()]})
        return response.json(200, server_info.llama_models(self._settings, self._created))

    def _model_info(self, exchange: wire.Exchange) -> response.Response:
        return response.json(200, server_info.model_info(self._settings))

    def _server_info(self, exchange: wire.Exchange) -> response.Response:
        shared = self._state
        facts = server_info.server_info(
            self._settings,
            tokens_per_s=shared.tokens_per_s(),
            tokens_max=metrics.TOKENS_TOTAL_MAX,
        )
        return response.json(200, facts)

    def _loads(self, exchange: wire.Exchange) -> response.Response:
        shared = self._state
        now = datetime.now(tz=UTC).isoformat()
        load = server_info.Load(
            running=len(shared.slots.running),
            waiting=len(shared.slots.waiting),
            used_tokens=metrics.used_tokens(shared.slots),
            tokens_per_s=shared.tokens_per_s(),
            tokens_max=metrics.TOKENS_TOTAL_MAX,
        )
        return response.json(200, server_info.loads(self._settings, load, now))

    def _load(self, exchange: wire.Exchange) -> response.Response:
        slots = self._state.slots
        used = metrics.used_tokens(slots)
        load = {
            "dp_rank": None,
            "num_reqs": len(slots.running) + len(slots.waiting),
            "num_waiting_reqs": len(slots.waiting),
            "num_tokens": used,
            "num_pending_tokens": 0,
            "ts_tic": time.monotonic(),
        }
        return response.json(200, [load])

    def _metrics(self, exchange: wire.Exchange) -> response.Response:
        if self._state.box.server_wide("no_metrics"):
            return refusals.not_found()
        return metrics.page(
            self._settings,
            self._state.slots,
            self._state.seen,
            tokens_per_s=self._state.tokens_per_s(),
            gzipped="gzip" in exchange.request.headers.get("accept-encoding", ""),
        )


_DEPRECATED: Final = response.json(
    404,
    {
        "object": "error",
        "message": "Endpoint '/get_weight_version' or '/weight_version' is deprecated."
        " Please use '/model_info' instead.",
        "type": "404",
        "param": None,
        "code": 404,
    },
)
