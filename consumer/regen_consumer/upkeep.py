"""What a consumer does beside answering: heartbeats, its share of the run's upkeep, its report."""

import random
from typing import Final

from regen_common import log
from regen_common.clock import Clock
from regen_common.queue import executor, shapes, transitions
from regen_consumer.answering import Answering
from regen_consumer.delivery import Delivery
from regen_consumer.gpu_report import GpuReport
from regen_consumer.leases import Leases
from regen_consumer.leaving import WAITABLE, Leaving
from regen_consumer.maintenance import Maintenance
from regen_consumer.slots import Slots
from regen_consumer.watch import Watch
from regen_consumer.work import Work
from regen_consumer.worker import RqSide

TICK_S: Final = 2.0
"""Reaping, topping up, reporting. With the lease this bounds how long a dead consumer is missed."""

BEATS_PER_LEASE: Final = 3


class Heartbeats:
    """Extends all leases, as long as the consumer works or holds any."""

    def __init__(
        self, queue: executor.AsyncQueue, *, leases: Leases, leaving: Leaving, lease_s: float
    ) -> None:
        self._queue = queue
        self._leases = leases
        self._leaving = leaving
        self._lease_s = lease_s

    async def run(self) -> None:
        while not self._leaving.ordered or len(self._leases):
            await self._leaving.sleep(self._lease_s / BEATS_PER_LEASE)
            held = self._leases.all()
            if held:
                await self._beat(held)

    async def _beat(self, held: list[shapes.Lease]) -> None:
        call = transitions.heartbeat(leases=held, lease_s=self._lease_s)
        try:
            gone = await self._queue.execute(call)
        except WAITABLE as error:
            log.waiting("redis_waited_for", transition="heartbeat", error=str(error))
            return
        for job in self._leases.lost(eid for _, eid in gone):
            log.warning("lease_lost", index=job.lease.index)


class Ticks:
    """Every two seconds: RQ's heartbeat, the run's upkeep, the report, and the end of a burst."""

    def __init__(
        self,
        *,
        rq: RqSide,
        maintenance: Maintenance,
        report: GpuReport,
        watch: Watch,
        answering: Answering,
        slots: Slots,
        delivery: Delivery,
        work: Work,
        leaving: Leaving,
        burst: bool,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._rq = rq
        self._maintenance = maintenance
        self._report = report
        self._watch = watch
        self._answering = answering
        self._slots = slots
        self._delivery = delivery
        self._work = work
        self._leaving = leaving
        self._burst = burst
        self._clock = clock
        self._rng = rng

    async def run(self) -> None:
        while not self._leaving.ordered:
            await self._leaving.patiently(self._tick)
            await self._leaving.sleep(TICK_S * self._rng.uniform(0.8, 1.2))

    async def publish(self, state: str) -> None:
        """Say to the status how we are."""
        values = {
            "state": state,
            "running": self._slots.in_flight,
            "slots": self._slots.slots,
            "last_error": self._watch.last_error or self._work.last_error,
            "worker": self._rq.worker.name,
            **self._answering.shown(self._clock.monotonic_s()),
        }
        await self._rq.call(self._report.publish, values)

    async def _tick(self) -> None:
        await self._rq.beat(self._slots.state)
        await self._rq.call(self._maintenance.tick)
        if self._watch.open:
            await self._answering.look()
        state = self._slots.state if self._watch.open else f"engine {self._watch.state}"
        await self.publish(state)
        if self._burst and self._is_over():
            log.info("burst_over")
            self._leaving.order()

    def _is_over(self) -> bool:
        """Nothing is left to ask, here or in the hands of a consumer that died."""
        now = self._maintenance.books
        if now is None or self._slots.open_jobs or self._delivery.undelivered:
            return False
        return not (now.not_enqueued or now.queued or now.leased)
