"""The slots loop, with claims and work made up."""

import asyncio
import random
from collections import deque

from clocks import FakeClock
from regen_common.queue.shapes import Claim, Claimed, Lease
from regen_consumer.slots import IDLE_PAUSE_MAX_S, Slots


class Bench:
    """A queue of jobs, and work that lasts until it is let go."""

    def __init__(self, jobs: int, slots: int) -> None:
        self.left = deque(range(jobs))
        self.clock = FakeClock()
        self.running: dict[int, asyncio.Event] = {}
        self.asked_for: list[int] = []
        self.state = "ok"
        self.may_claim = True
        self.undelivered = 0
        self.slots = Slots(
            slots=slots,
            claim=self.claim,
            work=self.work,
            may_claim=lambda: self.may_claim,
            undelivered=lambda: self.undelivered,
            clock=self.clock,
            rng=random.Random(1),
        )

    async def claim(self, n: int) -> Claim:
        self.asked_for.append(n)
        jobs = []
        while self.left and len(jobs) < n and self.state == "ok":
            index = self.left.popleft()
            jobs.append(Claimed(Lease("q", index, f"e{index}"), 0, 0, 0))
        return Claim(self.state, 1, jobs)

    async def work(self, job: Claimed) -> None:
        self.running[job.lease.index] = done = asyncio.Event()
        try:
            await done.wait()
        finally:
            del self.running[job.lease.index]

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def started(bench: Bench) -> asyncio.Task[None]:
    task = asyncio.create_task(bench.slots.run())
    await bench.settle()
    return task


async def ended(bench: Bench, task: asyncio.Task[None]) -> None:
    bench.slots.leave()
    bench.slots.cancel_all()
    await asyncio.wait_for(task, 5)
    await bench.slots.drained(5)


def test_slots_are_filled_at_once_and_refilled_one_by_one() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=100, slots=8)
        task = await started(bench)
        assert bench.slots.in_flight == 8
        assert bench.asked_for == [8]
        bench.running[3].set()
        await bench.settle()
        assert bench.slots.in_flight == 8
        assert bench.asked_for == [8, 1]
        await ended(bench, task)

    asyncio.run(scenario())


def test_nothing_is_claimed_while_it_may_not_be() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=10, slots=4)
        bench.may_claim = False
        task = await started(bench)
        assert bench.asked_for == []
        bench.may_claim = True
        bench.slots.poke()
        await bench.settle()
        assert bench.slots.in_flight == 4
        await ended(bench, task)

    asyncio.run(scenario())


def test_answers_that_redis_does_not_take_stop_the_claims() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=100, slots=4)
        bench.undelivered = 16
        task = await started(bench)
        assert bench.asked_for == []
        bench.undelivered = 15
        bench.slots.poke()
        await bench.settle()
        assert bench.slots.in_flight == 4
        await ended(bench, task)

    asyncio.run(scenario())


def test_a_pausing_prompt_gives_its_slot_up_and_comes_back_before_new_ones() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=100, slots=2)
        go_on, paused = asyncio.Event(), asyncio.Event()

        async def work(job: Claimed) -> None:
            if job.lease.index == 0:
                async with bench.slots.pausing():
                    paused.set()
                    await go_on.wait()
            await bench.__class__.work(bench, job)

        bench.slots._work = work
        task = await started(bench)
        await paused.wait()
        await bench.settle()
        assert sorted(bench.running) == [1, 2]
        go_on.set()
        await bench.settle()
        assert sorted(bench.running) == [1, 2]  # no slot is free for it yet
        bench.running[1].set()
        await bench.settle()
        assert sorted(bench.running) == [0, 2]
        assert bench.slots.in_flight == 2
        await ended(bench, task)

    asyncio.run(scenario())


def test_cancelled_work_frees_its_slot_even_while_it_pauses() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=2, slots=2)

        async def work(_job: Claimed) -> None:
            async with bench.slots.pausing():
                await asyncio.Event().wait()

        bench.slots._work = work
        task = await started(bench)
        assert (bench.slots.in_flight, bench.slots.open_jobs) == (0, 2)
        bench.slots.cancel_all()
        await bench.settle()
        assert (bench.slots.in_flight, bench.slots.open_jobs) == (0, 0)
        await ended(bench, task)

    asyncio.run(scenario())


def test_claims_that_bring_nothing_back_off_to_two_seconds() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=0, slots=4)

        async def idle(seconds: float) -> None:
            bench.clock.slept_s.append(seconds)
            if len(bench.clock.slept_s) == 12:
                bench.slots.leave()
            await asyncio.sleep(0)

        bench.slots._idle = idle  # type: ignore[method-assign]
        await asyncio.wait_for(bench.slots.run(), 5)
        pauses = bench.clock.slept_s
        assert pauses[0] < 0.05
        assert IDLE_PAUSE_MAX_S / 2 <= pauses[-1] <= IDLE_PAUSE_MAX_S
        assert bench.slots.state == "idle"

    asyncio.run(scenario())


def test_state_tells_why_nothing_is_claimed() -> None:
    async def scenario() -> None:
        bench = Bench(jobs=5, slots=4)
        bench.state = "halted"
        task = await started(bench)
        assert bench.slots.state == "halted"
        await ended(bench, task)

    asyncio.run(scenario())
