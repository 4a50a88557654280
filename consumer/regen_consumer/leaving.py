"""Whether, why and how fast this consumer is to leave; and waiting that heeds it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from regen_common import errors, log
from regen_common.clock import Clock

REDIS_PAUSE_S: Final = 1.0
WHILE_LEAVING_S: Final = 0.2

WAITABLE: Final = (
    errors.RedisUnavailableError,
    errors.RedisReadOnlyError,
    errors.RedisFullError,
)
"""What Redis gets over by itself, or with somebody's help: everybody waits."""

GONE: Final = (errors.WrongEpochError, errors.RunNotFoundError)
"""The run that this process knows is no more: nothing of it is taken any longer."""


class Leaving:
    """Set once, by a signal, an ``rq`` command, a burst's end, or an error."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ordered = asyncio.Event()
        self._hurry = asyncio.Event()
        self.error: errors.RegenError | None = None

    @property
    def ordered(self) -> bool:
        return self._ordered.is_set()

    @property
    def hurried(self) -> bool:
        return self._hurry.is_set()

    @property
    def run_is_gone(self) -> bool:
        return isinstance(self.error, GONE)

    def order(self) -> None:
        """Leave in order; told a second time, at once."""
        if self.ordered:
            self._hurry.set()
        self._ordered.set()

    def because_of(self, error: errors.RegenError) -> None:
        """Leave in order; the first error is what the process ends with."""
        if self.error is None:
            self.error = error
        self._ordered.set()

    async def wait(self) -> None:
        """Until leaving is ordered."""
        await self._ordered.wait()

    async def unless_hurried(self, what: Awaitable[object], *, within_s: float | None) -> None:
        """Wait for ``what``, but no longer than told, and not through a second order."""
        hurry = asyncio.ensure_future(self._hurry.wait())
        task = asyncio.ensure_future(what)
        await asyncio.wait({task, hurry}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()

    async def sleep(self, seconds: float) -> None:
        """Sleep, but not through the order to leave."""
        if self.ordered:
            await self._clock.asleep(min(seconds, WHILE_LEAVING_S))
            return
        try:
            async with asyncio.timeout(seconds):
                await self._ordered.wait()
        except TimeoutError:
            return

    async def patiently(self, step: Callable[[], Awaitable[None]]) -> None:
        """Do a step that needs Redis, again and again while Redis is away."""
        while True:
            try:
                await step()
            except WAITABLE as error:
                log.waiting("redis_waited_for", error=str(error))
                await self.sleep(REDIS_PAUSE_S)
                if self.ordered:
                    return
            else:
                return
