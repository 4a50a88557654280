"""Random search over the queue protocol: many actors, faults everywhere, nothing lost or double."""

import os
from collections.abc import Callable
from typing import ClassVar

import places
import pytest
import redis
import world
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from regen_common.run import keys

EXAMPLES = int(os.environ.get("REGEN_MODEL_EXAMPLES", "100"))
STEPS = 50

categories = st.sampled_from(keys.CATEGORIES)
pick = st.integers(0, 10**6)
interruptions = st.sampled_from(
    ["none", "none", "finish", "reap", "claim", "release", "reap+claim", "fail", "die", "delete"]
)


class QueueModel(RuleBasedStateMachine):
    client: ClassVar[redis.Redis]

    def __init__(self) -> None:
        super().__init__()
        self.w = world.World(self.client)

    def hand(self, which: int) -> world.Hand | None:
        return self.w.hands[which % len(self.w.hands)] if self.w.hands else None

    def some_hands(self, which: list[int]) -> list[world.Hand]:
        return [self.w.hands[k % len(self.w.hands)] for k in which] if self.w.hands else []

    def interruption(self, what: str, which: int) -> Callable[[], None] | None:
        def reap() -> None:
            for of in keys.CATEGORIES:
                self.w.reap(of)

        def claim() -> None:
            self.w.claim(1, 5, keys.CATEGORIES[which % 2])

        def die() -> None:
            raise world.DiedInBetweenError

        def fail() -> None:
            if hand := self.hand(which):
                self.w.fail(hand)

        def delete() -> None:
            self.w.client.delete(world.K.job(which % world.SIZE))
            self.w.deleted.add(which % world.SIZE)

        return {
            "none": None,
            "finish": lambda: self.w.finish(self.some_hands([which, which + 1])),
            "reap": reap,
            "claim": claim,
            "release": lambda: self.w.release(self.some_hands([which])),
            "reap+claim": lambda: (reap(), claim())[0],
            "fail": fail,
            "die": die,
            "delete": delete,
        }[what]

    @initialize(rounds=st.integers(0, 6))
    def begin_somewhere(self, rounds: int) -> None:
        for k in range(rounds):
            self.work(4 + 3 * (k % 3), 4 + k, k % 2 == 0)
            if k % 3:
                self.w.sink_batch(3 + k)

    # --- the ordinary course, so that examples get somewhere

    @rule(n=st.integers(1, 12), answered=st.integers(0, 12), bad=st.booleans())
    def work(self, n: int, answered: int, bad: bool) -> None:
        for of in keys.CATEGORIES:
            self.w.enqueue(of, n)
        got = self.w.claim(0, n)
        self.w.finish(got[:answered], bad=bad)

    @rule(n=st.integers(1, 12), stop=st.sampled_from([0, 1, 2, 3, 9, 9, 9, 9]))
    def sink_batch(self, n: int, stop: int) -> None:
        self.w.sink_batch(n, stop=stop)

    # --- producer

    @rule(of=categories, size=st.integers(1, 25), stale=st.booleans())
    def enqueue(self, of: str, size: int, stale: bool) -> None:
        self.w.enqueue(of, size, stale=stale)

    @rule(ids=st.lists(st.integers(0, world.SIZE - 1), min_size=1, max_size=6, unique=True))
    def canary(self, ids: list[int]) -> None:
        self.w.canary(ids)

    @rule(of=categories)
    def rewind(self, of: str) -> None:
        self.w.rewind(of)

    # --- consumers

    @rule(worker=st.integers(0, 2), n=st.integers(1, 12), first=categories)
    def claim(self, worker: int, n: int, first: str) -> None:
        self.w.claim(worker, n, first)

    @rule(which=st.lists(pick, min_size=1, max_size=10))
    def heartbeat(self, which: list[int]) -> None:
        self.w.heartbeat(self.some_hands(which))

    @rule(which=st.lists(pick, min_size=1, max_size=12), bad=st.booleans(), twice=st.booleans())
    def finish(self, which: list[int], bad: bool, twice: bool) -> None:
        self.w.finish(self.some_hands(which), bad=bad, twice=twice)

    @rule(which=pick)
    def fail(self, which: int) -> None:
        if hand := self.hand(which):
            self.w.fail(hand)

    @rule(
        which=st.lists(pick, min_size=1, max_size=8),
        charge=st.sampled_from(["none", "attempt", "strike"]),
    )
    def release(self, which: list[int], charge: str) -> None:
        self.w.release(self.some_hands(which), charge=charge)

    @rule(of=categories)
    def reap(self, of: str) -> None:
        self.w.reap(of)

    # --- time, losses

    @rule(seconds=st.sampled_from([0.5, 1, 3, 6, 30, 61, 61, 3700]))
    def tick(self, seconds: float) -> None:
        self.w.tick(seconds)

    @rule(which=pick)
    def repeat_call(self, which: int) -> None:
        self.w.repeat_call(which)

    @rule(which=pick)
    def lose_last_writes(self, which: int) -> None:
        self.w.lose_last_writes(which)

    @rule(really=st.integers(0, 5))
    def lose_everything_and_repair(self, really: int) -> None:
        if really == 0:
            self.w.lose_everything_and_repair()

    # --- RQ

    @rule(of=categories, ahead=st.sampled_from([0, 3600, 7200]), what=interruptions, k=pick)
    def rq_cleanup(self, of: str, ahead: int, what: str, k: int) -> None:
        self.w.rq_cleanup(of, clock_ahead_s=ahead, by=self.interruption(what, k))

    def some_job(self, which: int, registry: str | None = None) -> int | None:
        if registry:
            ids = [
                keys.index_of(job_id.decode())
                for queue in world.K.queues
                for job_id in self.w.client.zrange(keys.rq_registry(registry, queue), 0, -1)
            ]
        else:
            ids = [i for i in range(world.SIZE) if self.w.client.exists(world.K.job(i))]
        return ids[which % len(ids)] if ids else None

    @rule(k=pick, what=interruptions)
    def rq_requeue(self, k: int, what: str) -> None:
        if (index := self.some_job(k, "failed")) is not None:
            self.w.rq_requeue(index, by=self.interruption(what, k))

    @rule(k=pick, what=interruptions)
    def rq_cancel(self, k: int, what: str) -> None:
        if (index := self.some_job(k)) is not None:
            self.w.rq_cancel(index, by=self.interruption(what, k))

    @rule(k=pick)
    def rq_delete(self, k: int) -> None:
        if (index := self.some_job(k)) is not None:
            self.w.rq_delete(index)

    # --- sinks

    @rule(n=st.integers(1, 15), slow=st.booleans())
    def cut(self, n: int, slow: bool) -> None:
        held = self.w.read_stream(n)
        if held is None:
            return
        if slow:
            self.w.held = [*self.w.held[-7:], held]
        else:
            self.w.cut(held)

    @rule(k=pick)
    def read_intent(self, k: int) -> None:
        found = self.w.open_intents()
        if found:
            self.w.held = [*self.w.held[-7:], self.w.read_intent(found[k % len(found)])]

    @rule(k=pick)
    def go_on_with_what_is_held(self, k: int) -> None:
        if not self.w.held:
            return
        held = self.w.held[k % len(self.w.held)]
        if held.draft is not None:
            self.w.cut(held)
        else:
            self.w.start_put(held)

    @rule(k=pick, crash=st.booleans())
    def land(self, k: int, crash: bool) -> None:
        if self.w.in_flight:
            self.w.land(self.w.in_flight[k % len(self.w.in_flight)], crash=crash)

    @rule(k=pick)
    def commit_again(self, k: int) -> None:
        if self.w.objects:
            names = sorted(self.w.objects)
            self.w.commit(self.w.queue, names[k % len(names)])

    # --- people

    @rule(k=pick, n=st.integers(1, 5))
    def requeue(self, k: int, n: int) -> None:
        done = self.w.done()
        ids = {done[(k + j) % len(done)] for j in range(min(n, len(done)))}
        self.w.requeue(sorted(ids))

    @rule(ids=st.lists(st.integers(0, world.SIZE - 1), max_size=5), k=pick)
    def retry_failed(self, ids: list[int], k: int) -> None:
        found = [self.some_job(k, registry) for registry in ("failed", "canceled")]
        self.w.retry_failed([*ids, *(index for index in found if index is not None)])

    @rule(what=st.sampled_from(["halt", "resume", "resume", "suspend", "go on", "go on"]))
    def pause(self, what: str) -> None:
        if what == "halt":
            self.w.halt()
        elif what == "resume":
            self.w.resume()
        else:
            self.w.suspend(what == "suspend")

    @invariant()
    def everything_is_in_its_place(self) -> None:
        places.check(self.w)
        self.w.snapshot()

    def teardown(self) -> None:
        places.drain(self.w)


@pytest.mark.slow
def test_no_order_of_events_loses_or_doubles_a_prompt(model_client: redis.Redis) -> None:
    QueueModel.client = model_client
    run_state_machine_as_test(
        QueueModel,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
