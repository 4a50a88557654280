"""The slots loop: keeps a number of prompts in flight. Knows neither RQ nor HTTP.

A slot is free again the moment its answer is there; a prompt that pauses between two attempts gives
its slot up meanwhile and comes back before new ones. Claims ask for as many jobs as slots are free.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final

from regen_common import log
from regen_common.clock import Clock
from regen_common.queue.shapes import Claim, Claimed

IDLE_PAUSE_MIN_S: Final = 0.02
IDLE_PAUSE_MAX_S: Final = 2.0
UNDELIVERED_PER_SLOT: Final = 4


class Slots:
    """``claim(n)`` leases up to n jobs; ``work(job)`` sees one through to its outcome."""

    def __init__(
        self,
        *,
        slots: int,
        claim: Callable[[int], Awaitable[Claim]],
        work: Callable[[Claimed], Coroutine[Any, Any, None]],
        may_claim: Callable[[], bool],
        undelivered: Callable[[], int],
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.slots = slots
        self._claim = claim
        self._work = work
        self._may_claim = may_claim
        self._undelivered = undelivered
        self._clock = clock
        self._rng = rng
        self._busy = 0
        self._returning = 0
        self._changed = asyncio.Event()
        self._leaving = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.state = "starting"
        self.idle_since_s: float | None = None

    @property
    def in_flight(self) -> int:
        """Prompts on the engine now."""
        return self._busy

    @property
    def open_jobs(self) -> int:
        """Prompts in hand: on the engine, or pausing between two attempts."""
        return len(self._tasks)

    def poke(self) -> None:
        """Something that claims depend on has changed."""
        self._changed.set()

    def leave(self) -> None:
        """Claim nothing more."""
        self._leaving = True
        self._changed.set()

    def cancel(self, eid: str) -> None:
        """End one prompt's work; its task decides what becomes of the lease."""
        if task := self._tasks.get(eid):
            task.cancel()

    def cancel_all(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()

    async def run(self) -> None:
        """Claim and start work until :meth:`leave`."""
        pause_s = IDLE_PAUSE_MIN_S
        while not self._leaving:
            free = self.slots - self._busy - self._returning
            full = self._undelivered() >= UNDELIVERED_PER_SLOT * self.slots
            if free <= 0 or full or not self._may_claim():
                await self._change()
                continue
            claim = await self._claim(free)
            self._note(claim)
            for job in claim.jobs:
                self._start(job)
            if claim.jobs:
                pause_s = IDLE_PAUSE_MIN_S
            else:
                await self._idle(pause_s * self._rng.uniform(0.5, 1))
                pause_s = min(pause_s * 2, IDLE_PAUSE_MAX_S)

    async def drained(self, within_s: float) -> bool:
        """Wait for the work in hand; whether all of it ended in time."""
        if not self._tasks:
            return True
        _, pending = await asyncio.wait(list(self._tasks.values()), timeout=within_s)
        return not pending

    @contextlib.asynccontextmanager
    async def pausing(self) -> AsyncIterator[None]:
        """Inside a job's work: the slot is free for others until the block ends."""
        self._busy -= 1
        self._changed.set()
        try:
            yield
        except BaseException:
            self._busy += 1  # the work ends here, and its slot is given up once more
            raise
        self._returning += 1
        try:
            while self._busy >= self.slots:
                await self._change()
        finally:
            self._returning -= 1
            self._busy += 1

    def _note(self, claim: Claim) -> None:
        state = "busy" if claim.jobs or self._tasks else "idle"
        state = state if claim.state == "ok" else claim.state
        if state != self.state:
            log.info("claims", state=state)
        self.state = state
        if claim.jobs or self._tasks:
            self.idle_since_s = None
        elif self.idle_since_s is None:
            self.idle_since_s = self._clock.monotonic_s()

    def _start(self, job: Claimed) -> None:
        self._busy += 1
        task = asyncio.create_task(self._work(job), name=job.lease.eid)
        self._tasks[job.lease.eid] = task
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._busy -= 1
        del self._tasks[task.get_name()]
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work_broke", eid=task.get_name(), error=repr(error))

    async def _change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def _idle(self, seconds: float) -> None:
        """Pause between claims that brought nothing; leaving ends it at once."""
        deadline = self._clock.monotonic_s() + seconds
        while not self._leaving and (left := deadline - self._clock.monotonic_s()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._change()
