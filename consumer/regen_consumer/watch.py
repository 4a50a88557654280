"""The engine's state as this consumer knows it, and how it comes back.

========= ==================================================== =====================
state     meaning                                              claims
========= ==================================================== =====================
waiting   not seen well yet, or lost: probed with backoff      none
well      answers                                              yes
suspect   a fault came: one probe decides between the two      none until it decides
========= ==================================================== =====================

Before ``well`` the preflight runs anew: another model may have been started, and an engine that was
stuck although it looked healthy has to answer a small request before it gets prompts again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from regen_common import log
from regen_common.clock import Clock
from regen_consumer import stall
from regen_consumer.engine.client import Health
from regen_consumer.engine.faults import Fault

PROBE_PAUSE_MIN_S: Final = 1.0
PROBE_PAUSE_MAX_S: Final = 20.0
LOOK_EVERY_S: Final = 5.0
SAY_EVERY_S: Final = 30.0
DOWN_PATIENCE_S: Final = 30.0
PROBE_VALID_S: Final = 2.0
"""Faults that come together are one event: a probe of this age answers for all of them."""


class Probed(Protocol):
    """What the watch asks of an engine."""

    url: str

    async def health(self) -> Health: ...

    async def tokens(self) -> int | None:
        """The engine's token counters, None where it shows none."""
        ...


class Watch:
    """``ready()`` runs the preflight; ``abandon(why)`` takes back what is in flight.

    An engine that refuses (SIGTERM) still finishes what it has, so its answers are waited for; one
    that is stuck, or away for DOWN_PATIENCE_S, is not.
    """

    def __init__(
        self,
        engine: Probed,
        *,
        ready: Callable[[], Awaitable[None]],
        abandon: Callable[[str], Awaitable[None]],
        signs: Callable[[], tuple[int, int]],
        changed: Callable[[], None],
        stall_s: float,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._engine = engine
        self._ready = ready
        self._abandon = abandon
        self._signs = signs
        self._tell = changed
        self._stall_s = stall_s
        self._clock = clock
        self._rng = rng
        self._probe_lock = asyncio.Lock()
        self._probed_at_s = float("-inf")
        self._closing = False
        self._changed = asyncio.Event()
        self.state = "waiting"
        self.last_error: str | None = None

    @property
    def open(self) -> bool:
        """May prompts be sent?"""
        return self.state == "well"

    def close(self) -> None:
        self._closing = True
        self._changed.set()

    async def suspect(self, fault: Fault) -> bool:
        """A fault came that may be the engine's. Probes once; returns whether it is well."""
        self.last_error = f"{fault.klass}: {fault}"
        async with self._probe_lock:
            if self._clock.monotonic_s() - self._probed_at_s <= PROBE_VALID_S:
                return self.open
            if not self.open:
                return False
            self.state = "suspect"
            health = await self._engine.health()
            self._probed_at_s = self._clock.monotonic_s()
            if health in (Health.WELL, Health.UNSURE):
                # under load a health check may time out while work goes on: the counters decide
                self._become("well")
                return True
        await self.give_up(f"{fault.klass}: {fault}")
        return False

    async def give_up(self, why: str, *, stuck: bool = False) -> None:
        """The engine is down, refuses, or is stuck: no more prompts for it."""
        if self.state == "waiting":
            return
        self.last_error = why
        self._become("waiting")
        log.error("engine_lost", engine=self._engine.url, why=why)
        if stuck:
            await self._abandon(why)

    async def run(self) -> None:
        """Bring the engine to ``well`` and watch over it, until :meth:`close`."""
        while not self._closing:
            if self.state == "waiting":
                await self._wait_for_it()
            else:
                await self._watch_over_it()

    def _become(self, state: str) -> None:
        self.state = state
        self._changed.set()
        self._tell()

    async def _wait_for_it(self) -> None:
        pause_s, said_at_s = PROBE_PAUSE_MIN_S, float("-inf")
        not_down_at_s = self._clock.monotonic_s()
        while not self._closing:
            health = await self._engine.health()
            if health is not Health.DOWN:
                not_down_at_s = self._clock.monotonic_s()
            elif self._clock.monotonic_s() - not_down_at_s >= DOWN_PATIENCE_S:
                await self._abandon("down")
            if health is Health.WELL:
                try:
                    await self._ready()
                except Fault as fault:
                    self.last_error = f"{fault.klass}: {fault}"
                    health = Health.UNSURE
                else:
                    log.info("engine_well", engine=self._engine.url)
                    self._become("well")
                    return
            now_s = self._clock.monotonic_s()
            if now_s - said_at_s >= SAY_EVERY_S:
                said_at_s = now_s
                log.warning(
                    "engine_waited_for",
                    engine=self._engine.url,
                    health=health.value,
                    hint="it gets prompts as soon as it answers; is --engine right?",
                )
            await self._pause(pause_s * self._rng.uniform(0.7, 1.0))
            pause_s = min(pause_s * 1.5, PROBE_PAUSE_MAX_S)

    async def _watch_over_it(self) -> None:
        """Look for progress while there is work; a stuck engine is given up."""
        seen = stall.Watch()
        while not self._closing and self.state != "waiting":
            answers, in_flight = self._signs()
            tokens = await self._engine.tokens() if in_flight else None
            sign = stall.Sign(
                at_s=self._clock.monotonic_s(),
                tokens=tokens,
                answers=answers,
                in_flight=in_flight,
            )
            seen = stall.look(seen, sign)
            if stall.stalled(seen, stall_s=self._stall_s):
                idle_s = sign.at_s - seen.moved_at_s
                why = f"stalled: no progress for {idle_s:.0f} s with {in_flight} in flight"
                await self.give_up(why, stuck=True)
                return
            await self._pause(min(LOOK_EVERY_S, self._stall_s / 4))

    async def _pause(self, seconds: float) -> None:
        """Sleep, but not through a change of state or the end."""
        self._changed.clear()
        if self._closing:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
