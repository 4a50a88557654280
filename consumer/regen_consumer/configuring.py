"""The run's configuration as this consumer follows it, and the model that the run is pinned to."""

import asyncio
from typing import Any

from regen_common import errors, log
from regen_common.run import config, opening
from regen_consumer.answering import Answering
from regen_consumer.leaving import Leaving
from regen_consumer.maintenance import Maintenance
from regen_consumer.worker import RqSide


class Configuring:
    """``now`` is what the next request is made with."""

    def __init__(
        self,
        run: opening.OpenRun,
        *,
        rq: RqSide,
        answering: Answering,
        maintenance: Maintenance,
        leaving: Leaving,
        me: str,
        allow_model_change: bool,
    ) -> None:
        self._run = run
        self._rq = rq
        self._answering = answering
        self._maintenance = maintenance
        self._leaving = leaving
        self._me = me
        self._allow_model_change = allow_model_change
        self._lock = asyncio.Lock()
        self.now = run.config

    async def follow(self) -> None:
        """Before the next POST: what was just claimed is asked under the newest configuration.

        Raises :class:`regen_common.errors.EngineRefusedError` when the engine can't serve it, and
        :class:`regen_consumer.engine.faults.Fault` when it can't be asked now.
        """
        async with self._lock:
            found = await self._rq.call(config.load, self._run.client, self.now.run)
            if found.version != self.now.version:
                log.info("configuration", version=found.version)
                self.now = found
                self._maintenance.configure(found)
                await self._answering.configure(found)

    async def prove_engine(self) -> None:
        """The engine looks well: prove it by a small request, and pin the model.

        Raises as :meth:`follow`; what can't be served stops the consumer.
        """
        try:
            await self._answering.get_ready(self.now)
            await self._leaving.patiently(self._pin_model)
        except errors.UsageError as error:
            self._leaving.because_of(error)
            raise

    async def _pin_model(self) -> None:
        model, pinned = self._answering.model_pin(), self.now["model"]
        if pinned is None:
            self.now = await self._rq.call(self._change, {"model": model})
        elif pinned != model:
            if not self._allow_model_change:
                raise errors.EngineRefusedError(
                    f"the engine serves {_named(model)}, and run {self.now.run!r} was begun with "
                    f"{_named(pinned)}; start the right model, or use --allow-model-change"
                )
            log.warning("model_changed", now=model["name"], pinned=pinned["name"])

    def _change(self, values: dict[str, Any]) -> config.Config:
        return config.change(self._run.client, self._run.queue, values, who=self._me)


def _named(model: dict[str, Any]) -> str:
    differs = ", ".join(f"{name} {value}" for name, value in model.items() if name != "name")
    return f"{model['name']!r} ({differs})"
