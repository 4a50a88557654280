"""One leased prompt's way to its outcome: ask, and on a fault do what the policy says."""

import asyncio
import random
import zlib
from base64 import b64encode
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from regen_common import errors, log
from regen_common.clock import Clock, iso_utc
from regen_common.queue import shapes, transitions
from regen_consumer import policy
from regen_consumer.answering import Answering
from regen_consumer.delivery import Delivery
from regen_consumer.engine.faults import Blame, Fault
from regen_consumer.watch import Watch

DETAIL_CHARS_MAX: Final = 300
RQ_RESULT_FAILED: Final = 2
RQ_RESULT_STOPPED: Final = 3


@dataclass(kw_only=True, slots=True)
class Course:
    """What happened to one prompt in this process so far."""

    job: shapes.Claimed
    began_s: float
    attempts: int
    passing_s: float = 0.0


class Work:
    """Sees prompts through. ``stop(error)`` ends the consumer; ``pausing()`` lends the slot out."""

    def __init__(
        self,
        *,
        answering: Answering,
        delivery: Delivery,
        watch: Watch,
        pausing: Callable[[], AbstractAsyncContextManager[None]],
        worker: str,
        gpu: int,
        clock: Clock,
        rng: random.Random,
        stop: Callable[[errors.RegenError], None],
    ) -> None:
        self._answering = answering
        self._delivery = delivery
        self._watch = watch
        self._pausing = pausing
        self._worker = worker
        self._gpu = gpu
        self._clock = clock
        self._rng = rng
        self._stop = stop
        self.stopped_by_user: set[str] = set()
        self.faults = 0
        self.last_error: str | None = None

    async def see_through(self, job: shapes.Claimed) -> None:
        """From the lease to an outcome. Who cancels it gives the leases back, in order."""
        course = Course(job=job, began_s=self._clock.monotonic_s(), attempts=job.attempts)
        try:
            while not await self._try(course):
                pass
        except asyncio.CancelledError:
            await self._cancelled(course)
        except errors.StoreError as error:
            await self._give_back(course)
            self._stop(error)

    async def _try(self, course: Course) -> bool:
        """One attempt. Returns whether the prompt has its outcome."""
        try:
            record = await self._answering.answer(course.job, attempt=course.attempts + 1)
        except Fault as fault:
            return await self._after(course, fault)
        self._delivery.answer(record)
        return True

    async def _after(self, course: Course, fault: Fault) -> bool:
        self.faults += 1
        self.last_error = f"{fault.klass}: {fault}"
        index = course.job.lease.index
        log.warning(
            "fault", index=index, klass=fault.klass, blame=fault.blame.value, why=str(fault)
        )
        decision = policy.decide(
            fault.blame,
            engine_well=await self._engine_well(fault),
            attempts=course.attempts,
            passing_s=course.passing_s,
            retry_after_s=fault.retry_after_s,
            rng=self._rng,
        )
        course.attempts += decision.charged
        if decision.action is policy.Action.AGAIN:
            await self._pause(course, decision.pause_s, passing=not decision.charged)
            return False
        if decision.action is policy.Action.FAIL:
            await self._fail(course, fault.klass, str(fault))
        else:
            await self._give_back(course)
            if decision.action is policy.Action.STOP:
                self._stop(errors.EngineRefusedError(f"{fault.klass}: {fault}"))
        return True

    async def _engine_well(self, fault: Fault) -> bool:
        if fault.blame is Blame.UNSURE:
            return await self._watch.suspect(fault)
        if fault.blame is Blame.ENGINE:
            await self._watch.suspect(fault)
        return False

    async def _pause(self, course: Course, seconds: float, *, passing: bool) -> None:
        if passing:
            course.passing_s += seconds
        async with self._pausing():
            await self._clock.asleep(seconds)

    async def _cancelled(self, course: Course) -> None:
        if course.job.lease.eid in self.stopped_by_user:
            self.stopped_by_user.discard(course.job.lease.eid)
            await self._fail(course, "stopped", "stopped with an rq command", status="stopped")

    async def _give_back(self, course: Course) -> None:
        await self._delivery.release([course.job.lease])

    async def _fail(
        self, course: Course, klass: str, detail: str, *, status: str = "failed"
    ) -> None:
        lease = course.job.lease
        now_s = self._clock.time_s()
        detail = detail[:DETAIL_CHARS_MAX]
        call = transitions.fail(
            lease=lease,
            round=course.job.round,
            failure={
                "class": klass,
                "detail": detail,
                "attempts": course.attempts,
                "gpu": self._gpu,
                "worker": self._worker,
                "at": iso_utc(now_s),
            },
            result=_rq_result(klass, detail, self._worker, lease.eid, status=status),
            worker=self._worker,
            working_s=self._clock.monotonic_s() - course.began_s,
            status=status,
        )
        word = await self._delivery.fail(call, lease)
        log.error("prompt_failed", index=lease.index, klass=klass, state=word, why=detail)


def _rq_result(klass: str, detail: str, worker: str, eid: str, *, status: str) -> dict[str, Any]:
    """The fields of RQ 3.0's Result, so that ``job.latest_result()`` tells why it failed."""
    text = f"{klass}: {detail}"
    return {
        "type": RQ_RESULT_STOPPED if status == "stopped" else RQ_RESULT_FAILED,
        "worker_name": worker,
        "execution_id": eid,
        "exc_string": b64encode(zlib.compress(text.encode())).decode(),
    }
