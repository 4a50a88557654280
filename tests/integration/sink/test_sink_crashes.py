"""A sink that dies between any two of its steps: the next one ends with every record once."""

import contextlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

import helpers
from regen_common.clock import SystemClock
from regen_common.objects import Objects, open_objects
from regen_common.queue import transitions
from regen_common.run import books, opening
from regen_consumer.sink import cutting, intents
from regen_consumer.sink.sink import Sink

SIZE = 25
LIMITS = cutting.Limits(records=10, bytes=1 << 20, age_s=60)


class KilledError(BaseException):
    """As sudden as kill -9: nothing of the sink runs after it."""


class Countdown:
    """Lets ``steps`` boundaries pass, and kills at the next one."""

    def __init__(self, steps: int | None) -> None:
        self.steps = steps
        self.passed: list[str] = []

    def boundary(self, name: str) -> None:
        if self.steps is not None and len(self.passed) >= self.steps:
            raise KilledError(name)
        self.passed.append(name)


class MortalQueue:
    """A queue whose caller may die before or after any transition."""

    def __init__(self, real: Any, countdown: Countdown) -> None:
        self.real, self.run, self.epoch = real, real.run, real.epoch
        self._countdown = countdown

    def execute(self, call: transitions.Call[Any]) -> Any:
        if call.script == "books":
            return self.real.execute(call)
        self._countdown.boundary(f"before {call.script}")
        out = self.real.execute(call)
        self._countdown.boundary(f"after {call.script}")
        return out


class MortalObjects:
    """A destination whose writer may die before or after any write."""

    def __init__(self, real: Objects, countdown: Countdown) -> None:
        self._real = real
        self._countdown = countdown

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in ("put_new", "put"):
            return found

        def mortal(*args: Any, **kwargs: Any) -> Any:
            self._countdown.boundary(f"before {name}")
            out = found(*args, **kwargs)
            self._countdown.boundary(f"after {name}")
            return out

        return mortal


class Bench:
    """One run with its answers in the stream, and a clock that jumps."""

    def __init__(self, client: redis.Redis, folder: Path) -> None:
        client.flushall()
        self.client = client
        self.now_s = 1_800_000_000.0
        self.tick(0)
        self.opened = helpers.make_run(client, size=SIZE, sources=helpers.movable_sources())
        self.folder = folder
        helpers.answer(self.opened, list(range(SIZE)), masks={3: 1})

    def tick(self, seconds: float) -> None:
        self.now_s += seconds
        self.client.set("test:now", repr(self.now_s))

    def sink(self, countdown: Countdown, codec: str = "zstd") -> Sink:
        run: opening.OpenRun = replace(
            self.opened,
            queue=MortalQueue(self.opened.queue, countdown),  # type: ignore[arg-type]
        )
        return Sink(
            run,
            MortalObjects(open_objects(str(self.folder)), countdown),  # type: ignore[arg-type]
            limits=LIMITS,
            codec=codec,
            clock=SystemClock(),
            redis_time_s=lambda: self.now_s,
        )

    def work(self, countdown: Countdown, codec: str = "zstd") -> None:
        """A sink's life: to the end of the run, or to its death."""
        sink = self.sink(countdown, codec)
        sink.open()
        while sink.step(flush=True):
            self.tick(intents.SETTLE_S / 2)
        sink.close()
        assert sink.healthy

    def check(self) -> None:
        found = helpers.read_batches(self.folder)
        assert helpers.times_each(found) == Counter(range(SIZE))
        assert all(record["text"] == f"answer {record['index']}" for record in found)
        counted = books.from_counted(self.opened.queue.execute(transitions.books()))
        assert (counted.done, counted.stream, counted.open_intents) == (SIZE, 0, 0)
        assert counted.unaccounted == 0
        assert self.client.hget(self.opened.keys.stats, "label:empty:chat") == b"1"
        assert self.client.hget(self.opened.keys.stats, "backlog") == b"0"
        ledger = self.client.hkeys(self.opened.keys.ledger)
        written = {p.name.encode() for p in (self.folder / "regen" / "batches").iterdir()}
        assert set(ledger) == written


def boundaries(client: redis.Redis, folder: Path) -> list[str]:
    """All the places where a sink of this run can die."""
    countdown = Countdown(None)
    Bench(client, folder).work(countdown)
    return countdown.passed


def test_every_step_is_a_place_to_die(client: redis.Redis, tmp_path: Path) -> None:
    names = set(boundaries(client, tmp_path))
    steps = ("cut", "put_new", "commit", "put")
    assert names == {f"{when} {step}" for when in ("before", "after") for step in steps}


def test_dying_anywhere_loses_and_doubles_nothing(client: redis.Redis, tmp_path: Path) -> None:
    places = boundaries(client, tmp_path / "whole")
    for steps in range(len(places)):
        bench = Bench(client, tmp_path / f"died-{steps}")
        with pytest.raises(KilledError):
            bench.work(Countdown(steps))
        bench.work(Countdown(None), codec="none")  # an intent keeps the codec it was made with
        bench.check()


def test_two_sinks_and_one_dies_anywhere(client: redis.Redis, tmp_path: Path) -> None:
    places = boundaries(client, tmp_path / "whole")
    for steps in range(0, len(places), 3):
        bench = Bench(client, tmp_path / f"two-{steps}")
        other = bench.sink(Countdown(None))
        other.open()
        other.step(flush=True)  # it has cut, and sleeps
        with contextlib.suppress(KilledError):  # it may have less to do than a sink alone
            bench.work(Countdown(steps))
        while other.step(flush=True):
            bench.tick(intents.SETTLE_S / 2)
        other.close()
        bench.check()
