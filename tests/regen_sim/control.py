"""``/_sim/...``: what tests ask of the simulation itself."""

from collections.abc import Callable
from typing import Any

import orjson

from regen_sim import faults, response, state, wire

Handler = Callable[[wire.Exchange], response.Response | None]


class Control:
    """Reading what it saw, and changing how it misbehaves."""

    def __init__(self, shared: state.State) -> None:
        self._state = shared

    def routes(self) -> dict[tuple[str, str], Handler]:
        return {
            ("GET", "/_sim/faults"): self._faults,
            ("POST", "/_sim/faults"): self._change,
            ("DELETE", "/_sim/faults"): self._clear,
            ("GET", "/_sim/stats"): self._stats,
            ("GET", "/_sim/requests"): self._requests,
        }

    def _faults(self, exchange: wire.Exchange) -> response.Response:
        return response.json(200, self._shown())

    def _change(self, exchange: wire.Exchange) -> response.Response:
        try:
            self._state.box.change(orjson.loads(exchange.request.body))
        except (ValueError, AttributeError, TypeError) as error:
            return response.json(400, {"error": str(error)})
        self._thaw()
        return response.json(200, self._shown())

    def _clear(self, exchange: wire.Exchange) -> response.Response:
        self._state.box.clear()
        self._thaw()
        return response.json(200, self._shown())

    def _thaw(self) -> None:
        frozen = self._state.box.server_wide("freeze") is not None
        self._state.slots.freeze(frozen=frozen)

    def _stats(self, exchange: wire.Exchange) -> response.Response:
        with_digests = "digests=0" not in exchange.request.query
        shared = self._state
        found = shared.seen.stats(shared.slots, shared.box, with_digests=with_digests)
        return response.json(200, found)

    def _requests(self, exchange: wire.Exchange) -> response.Response:
        return response.json(200, self._state.seen.requests())

    def _shown(self) -> dict[str, Any]:
        box = self._state.box
        return {"active": [_settings(fault) for fault in box.active], "hits": dict(box.hits)}


def _settings(fault: faults.Fault) -> dict[str, Any]:
    selectors = {"count": fault.count, "per_prompt": fault.per_prompt, "marker": fault.marker}
    given = {name: value for name, value in selectors.items() if value is not None}
    return {"name": fault.name, "rate": fault.rate, **given, **fault.args}
