"""The engine's state: lost, waited for, proved, stuck."""

import asyncio
import random

from clocks import FakeClock
from regen_consumer.engine.client import Health
from regen_consumer.engine.faults import Fault
from regen_consumer.watch import Watch


class FakeEngine:
    url = "http://engine"

    def __init__(self) -> None:
        self.healths: list[Health] = [Health.WELL]
        self.counters: list[int | None] = [0]
        self.asked = 0

    async def health(self) -> Health:
        self.asked += 1
        return self.healths.pop(0) if len(self.healths) > 1 else self.healths[0]

    async def tokens(self) -> int | None:
        return self.counters.pop(0) if len(self.counters) > 1 else self.counters[0]


class Bench:
    def __init__(self, stall_s: float = 20) -> None:
        self.engine = FakeEngine()
        self.clock = FakeClock()
        self.ready_calls = 0
        self.refuses: list[Fault] = []
        self.abandoned: list[str] = []
        self.signs = (0, 0)
        self.watch = Watch(
            self.engine,
            ready=self.ready,
            abandon=self.abandon,
            signs=lambda: self.signs,
            changed=lambda: None,
            stall_s=stall_s,
            clock=self.clock,
            rng=random.Random(1),
        )
        self.watch._pause = self.pause  # type: ignore[method-assign]

    async def pause(self, seconds: float) -> None:
        await self.clock.asleep(seconds)

    async def ready(self) -> None:
        self.ready_calls += 1
        if self.refuses:
            raise self.refuses.pop(0)

    async def abandon(self, why: str) -> None:
        self.abandoned.append(why)

    async def until(self, state: str) -> None:
        running = asyncio.create_task(self.watch.run())
        for _ in range(500):
            await asyncio.sleep(0)
            if self.watch.state == state:
                break
        self.watch.close()
        await asyncio.wait_for(running, 5)
        assert self.watch.state == state


def test_an_engine_that_comes_up_slowly_is_waited_for_and_proved_before_it_gets_prompts() -> None:
    bench = Bench()
    bench.engine.healths = [Health.DOWN, Health.DOWN, Health.REFUSING, Health.WELL]
    bench.refuses = [Fault("busy", "still warming up")]
    asyncio.run(bench.until("well"))
    assert bench.engine.asked == 5
    assert bench.ready_calls == 2


def test_probes_of_an_absent_engine_back_off() -> None:
    bench = Bench()
    bench.engine.healths = [Health.DOWN] * 15 + [Health.WELL]
    asyncio.run(bench.until("well"))
    assert bench.clock.slept_s[0] <= 1
    assert 13 <= max(bench.clock.slept_s) <= 20
    assert bench.abandoned  # it was away for longer than what is in flight may wait


def test_a_fault_of_a_healthy_engine_does_not_stop_it() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.watch.state = "well"
        assert await bench.watch.suspect(Fault("cut", "broke"))
        assert bench.watch.open
        assert bench.watch.last_error == "cut: broke"

    asyncio.run(scenario())


def test_faults_that_come_together_are_probed_once() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.watch.state = "well"
        bench.engine.healths = [Health.DOWN]
        found = await asyncio.gather(
            *(bench.watch.suspect(Fault("cut", "broke")) for _ in range(40))
        )
        assert found == [False] * 40
        assert bench.engine.asked == 1
        assert not bench.watch.open
        assert bench.abandoned == []  # what is in flight fails by itself

    asyncio.run(scenario())


def test_an_engine_under_load_whose_health_check_is_late_is_kept() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.watch.state = "well"
        bench.engine.healths = [Health.UNSURE]
        assert await bench.watch.suspect(Fault("engine_error", "500"))

    asyncio.run(scenario())


def test_an_engine_without_progress_is_given_up_with_all_it_has() -> None:
    bench = Bench(stall_s=20)
    bench.watch.state = "well"
    bench.signs = (5, 40)
    bench.engine.counters = [7]
    bench.engine.healths = [Health.DOWN]
    asyncio.run(bench.until("waiting"))
    assert len(bench.abandoned) == 1
    assert "stalled" in bench.abandoned[0]


def test_an_engine_whose_counters_move_is_not_given_up() -> None:
    async def scenario() -> None:
        bench = Bench(stall_s=20)
        bench.watch.state = "well"
        bench.signs = (5, 40)
        bench.engine.counters = list(range(1, 300))
        running = asyncio.create_task(bench.watch.run())
        while bench.clock.now_s < 1_800_000_000 + 700:
            await asyncio.sleep(0)
        assert bench.watch.open
        bench.watch.close()
        await running

    asyncio.run(scenario())
