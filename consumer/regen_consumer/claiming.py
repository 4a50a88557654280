"""Claims: both queues, by weight, and never under an old configuration."""

import random
import secrets
from typing import Final

from regen_common import errors, log
from regen_common.clock import Clock
from regen_common.queue import executor, shapes, transitions
from regen_common.run import keys
from regen_consumer import pull
from regen_consumer.configuring import Configuring
from regen_consumer.engine.faults import Fault
from regen_consumer.leases import Leases
from regen_consumer.leaving import REDIS_PAUSE_S, WAITABLE, Leaving
from regen_consumer.maintenance import Maintenance
from regen_consumer.watch import Watch

UNAVAILABLE: Final = shapes.Claim("unavailable", 0, [])


class Claiming:
    """Leases jobs for one consumer."""

    def __init__(
        self,
        queue: executor.AsyncQueue,
        *,
        configuring: Configuring,
        maintenance: Maintenance,
        watch: Watch,
        leases: Leases,
        leaving: Leaving,
        worker: str,
        lease_s: float,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._queue = queue
        self._names = keys.Keys(run=queue.run)
        self._configuring = configuring
        self._maintenance = maintenance
        self._watch = watch
        self._leases = leases
        self._leaving = leaving
        self._worker = worker
        self._lease_s = lease_s
        self._clock = clock
        self._rng = rng

    async def claim(self, n: int) -> shapes.Claim:
        """Lease up to ``n`` jobs; none while Redis is away."""
        by_weight = pull.weights(self._remaining(), self._configuring.now["weights"])
        call = transitions.claim(
            queues=[self._names.queue(c) for c in pull.order(by_weight, self._rng)],
            n=n,
            token=secrets.token_hex(6),
            worker=self._worker,
            lease_s=self._lease_s,
        )
        try:
            claim = await self._queue.execute(call)
        except WAITABLE as error:
            log.waiting("redis_waited_for", transition="claim", error=str(error))
            await self._clock.asleep(REDIS_PAUSE_S)
            return UNAVAILABLE
        for job in claim.jobs:
            self._leases.add(job)
        if claim.jobs and claim.config_version != self._configuring.now.version:
            await self._leaving.patiently(self._follow)
        return claim

    def _remaining(self) -> dict[str, int]:
        counted = self._maintenance.books
        if counted is None:
            return self._configuring.now.plan
        return {name: c.queued + c.not_enqueued for name, c in counted.categories.items()}

    async def _follow(self) -> None:
        """A configuration that the engine refuses stops the consumer; an engine that can't be
        asked now is lost, and its return is proved under the new configuration."""
        try:
            await self._configuring.follow()
        except errors.UsageError as error:
            self._leaving.because_of(error)
        except Fault as fault:
            await self._watch.give_up(f"{fault.klass}: {fault}")
