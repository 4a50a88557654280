"""Answers on their way into Redis, which may be away."""

import asyncio
from typing import Any

from clocks import FakeClock
from regen_common import errors
from regen_common.queue import transitions
from regen_common.queue.shapes import Claimed, Finished, Lease
from regen_consumer import delivery
from regen_consumer.delivery import Delivery
from regen_consumer.leases import Leases


class FakeQueue:
    """Remembers calls; fails as long as it is told to."""

    def __init__(self) -> None:
        self.calls: list[transitions.Call[Any]] = []
        self.failing: list[Exception] = []

    async def execute(self, call: transitions.Call[Any]) -> Any:
        if self.failing:
            raise self.failing.pop()
        self.calls.append(call)
        if call.script == "finish":
            return ["accepted"] * len(call.bodies)
        return "ok" if call.script == "fail" else len(call.args["leases"])


class Bench:
    def __init__(self) -> None:
        self.queue = FakeQueue()
        self.leases = Leases()
        self.clock = FakeClock()
        self.poked = 0
        self.delivery = Delivery(
            self.queue,  # type: ignore[arg-type]
            worker="w",
            leases=self.leases,
            clock=self.clock,
            delivered=self.poke,
        )

    def poke(self) -> None:
        self.poked += 1

    def lease(self, index: int) -> Lease:
        lease = Lease("regen-chat", index, f"e{index}")
        self.leases.add(Claimed(lease, 0, 0, 0))
        return lease

    def answer(self, index: int, size: int = 10) -> None:
        self.delivery.answer(Finished(self.lease(index), 0, 0, 5, 1.0, b"x" * size))


def test_waiting_answers_go_together_and_in_order() -> None:
    async def scenario() -> None:
        bench = Bench()
        for index in range(150):
            bench.answer(index)
        assert bench.delivery.undelivered == 150
        bench.delivery.close()
        await bench.delivery.run()
        sizes = [len(call.bodies) for call in bench.queue.calls]
        assert sizes == [transitions.FINISH_MAX, 50]
        assert [r["index"] for call in bench.queue.calls for r in call.args["records"]] == list(
            range(150)
        )
        assert (bench.delivery.accepted, bench.delivery.undelivered, len(bench.leases)) == (
            150,
            0,
            0,
        )

    asyncio.run(scenario())


def test_a_call_carries_eight_megabytes_at_most() -> None:
    async def scenario() -> None:
        bench = Bench()
        for index in range(5):
            bench.answer(index, size=delivery.BATCH_BYTES_MAX // 2)
        bench.answer(5, size=delivery.BATCH_BYTES_MAX * 2)
        bench.delivery.close()
        await bench.delivery.run()
        assert [len(call.bodies) for call in bench.queue.calls] == [2, 2, 1, 1]

    asyncio.run(scenario())


def test_while_redis_is_away_answers_and_their_leases_are_kept() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.queue.failing = [
            errors.RedisUnavailableError("away"),
            errors.RedisReadOnlyError("disk"),
            errors.RedisFullError("full"),
        ]
        bench.answer(1)
        running = asyncio.create_task(bench.delivery.run())
        while len(bench.clock.slept_s) < 2:
            await asyncio.sleep(0)
        assert len(bench.leases) == 1
        assert bench.leases.in_hand() == []  # kept alive, but not to be given back
        bench.delivery.close()
        await asyncio.wait_for(running, 5)
        assert bench.delivery.accepted == 1
        assert len(bench.leases) == 0
        assert bench.clock.slept_s == sorted(bench.clock.slept_s)

    asyncio.run(scenario())


def test_given_back_leases_are_given_back_in_order_and_dropped() -> None:
    async def scenario() -> None:
        bench = Bench()
        leases = [bench.lease(index) for index in (3, 1, 2)]
        await bench.delivery.release(leases, charge="attempt")
        (call,) = bench.queue.calls
        assert [lease["index"] for lease in call.args["leases"]] == [3, 1, 2]
        assert call.args["charge"] == "attempt"
        assert len(bench.leases) == 0

    asyncio.run(scenario())
