"""Hands outcomes to Redis, in batches, until Redis has them.

An answer in hand is worth minutes of a GPU: while Redis is away or refuses writes it is kept and
offered again. The lease is heartbeaten until then, and the slot is free meanwhile; how many answers
may wait is bounded by the slots loop, which stops claiming.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from regen_common import log
from regen_common.clock import Clock
from regen_common.queue import executor, shapes, transitions
from regen_consumer.leases import Leases
from regen_consumer.leaving import WAITABLE

T = TypeVar("T")
BATCH_BYTES_MAX: Final = 8 << 20
PAUSE_MAX_S: Final = 5.0


class Delivery:
    """The way of answers, failures and returned leases into Redis."""

    def __init__(
        self,
        queue: executor.AsyncQueue,
        *,
        worker: str,
        leases: Leases,
        clock: Clock,
        delivered: Callable[[], None],
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._leases = leases
        self._clock = clock
        self._delivered = delivered
        self._waiting: deque[shapes.Finished] = deque()
        self._in_call = 0
        self._wake = asyncio.Event()
        self._closing = False
        self.accepted = 0
        self.dropped = 0

    @property
    def undelivered(self) -> int:
        """Answers that Redis has not taken yet."""
        return len(self._waiting) + self._in_call

    def answer(self, record: shapes.Finished) -> None:
        """Take an answer; it is delivered by :meth:`run`."""
        self._leases.answered(record.lease)
        self._waiting.append(record)
        self._wake.set()

    async def run(self) -> None:
        """Deliver until :meth:`close`, and then what is left."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._finish(self._batch())
            if self._closing:
                return

    def close(self) -> None:
        self._closing = True
        self._wake.set()

    async def fail(self, call: transitions.Call[str], lease: shapes.Lease) -> str:
        """End a job for the prompt's own fault; see :func:`transitions.fail`."""
        word = await self.insist(call)
        self._leases.drop(lease)
        return word

    async def release(self, leases: list[shapes.Lease], *, charge: str = "none") -> None:
        """Give leases back to the front of their queues, in order."""
        if leases:
            await self.insist(transitions.release(leases=leases, charge=charge))
        for lease in leases:
            self._leases.drop(lease)

    async def insist(self, call: transitions.Call[T]) -> T:
        """Run a transition, waiting for Redis as long as it takes."""
        pause_s = 0.2
        while True:
            try:
                return await self._queue.execute(call)
            except WAITABLE as error:
                log.waiting("redis_waited_for", transition=call.script, error=str(error))
                await self._clock.asleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MAX_S)

    def _batch(self) -> list[shapes.Finished]:
        batch: list[shapes.Finished] = []
        size = 0
        while self._waiting and len(batch) < transitions.FINISH_MAX:
            size += len(self._waiting[0].body)
            if batch and size > BATCH_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _finish(self, batch: list[shapes.Finished]) -> None:
        self._in_call = len(batch)
        words = await self.insist(transitions.finish(worker=self._worker, records=batch))
        self._in_call = 0
        for record, word in zip(batch, words, strict=True):
            self._leases.drop(record.lease)
            if word == "accepted":
                self.accepted += 1
            else:
                self.dropped += 1
                log.info("answer_dropped", index=record.lease.index, why=word)
        self._delivered()
