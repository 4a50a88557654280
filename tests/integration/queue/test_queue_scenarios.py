"""Each guard of the queue protocol: the sequence it is there for, with it and without it.

Every scenario is played twice on a real Valkey: with all guards it must end with everything in its
place and drain; with its own guard taken out (a line of Lua, or a rule of the sink) it must be
caught. The numbers are the rows of the table in docs/architecture.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

import places
import pytest
import redis
import world
from world import Mutation, World


@dataclass(frozen=True)
class Scenario:
    row: int
    play: Callable[[World], None]
    without: tuple[Mutation, ...]


SCENARIOS: list[Scenario] = []


def scenario(row: int, *without: Mutation) -> Callable[[Callable[[World], None]], None]:
    def register(play: Callable[[World], None]) -> None:
        SCENARIOS.append(Scenario(row, play, without))

    return register


def leased(w: World, *ids: int, worker: int = 0) -> list[world.Hand]:
    """Jobs for just these prompts, claimed by one consumer."""
    w.canary(list(ids))
    got = w.claim(worker, len(ids), world.category(ids[0]))
    assert sorted(hand.index for hand in got) == sorted(ids)
    return got


def done(w: World, index: int, *, bad: bool = False) -> None:
    """The prompt has an answer at the destination."""
    w.finish(leased(w, index), bad=bad)
    w.sink_batch(5)
    assert index in w.done()


# --- late answers


@scenario(
    1,
    Mutation("finish", "if job[1] == 'queued' then C('LREM', 'rq:queue:' .. queue, 1, id) end", ""),
)
def answer_after_the_lease_was_reaped(w: World) -> None:
    hands = leased(w, 0)
    w.tick(61)
    w.reap("chat")
    w.finish(hands)


@scenario(
    2,
    Mutation("finish", "if job[2] and job[2] ~= r.eid then", "if false then"),
)
def answer_while_another_holds_the_lease(w: World) -> None:
    hands = leased(w, 0)
    w.tick(61)
    w.reap("chat")
    assert w.claim(1, 1)
    w.finish(hands)


@scenario(
    3,
    Mutation("finish", "C('ZREM', 'rq:canceled:' .. queue, id)\n  C('DEL'", "C('DEL'"),
)
def answer_of_a_canceled_job(w: World) -> None:
    hands = leased(w, 0)
    w.rq_cancel(0)
    w.finish(hands)


@scenario(
    4,
    Mutation(
        "finish",
        "if C('SETBIT', P .. ':bits:enqueued', r.index, 1) == 0 then",
        "if false then",
    ),
)
def answer_whose_enqueueing_was_lost(w: World) -> None:
    w.snapshot()
    kept = len(w.snapshots) - 1
    hands = leased(w, 0)
    w.lose_last_writes(kept)
    w.finish(hands)


# --- RQ between its read and its write


@scenario(
    5,
    Mutation("claim", "elseif job[1] ~= 'queued' then", "elseif false then"),
    Mutation(
        "claim",
        "elseif job[3] and C('ZSCORE', 'rq:wip:' .. queue, id .. ':' .. job[3]) then",
        "elseif false then",
    ),
)
def clean_up_races_our_reaper(w: World) -> None:
    leased(w, 0)
    w.tick(3700)
    w.rq_cleanup("chat", by=lambda: w.reap("chat"))
    w.claim(1, 1)
    w.claim(2, 1)


@scenario(
    6,
    Mutation(
        "claim",
        "elseif job[3] and C('ZSCORE', 'rq:wip:' .. queue, id .. ':' .. job[3]) then",
        "elseif false then",
    ),
)
def clean_up_by_a_clock_ahead_races_reaper_and_claim(w: World) -> None:
    def reap_and_claim() -> None:
        w.reap("chat")
        assert w.claim(1, 1)

    leased(w, 0)
    w.tick(61)
    w.rq_cleanup("chat", clock_ahead_s=3600, by=reap_and_claim)
    w.claim(2, 1)


@scenario(
    7,
    Mutation(
        "claim",
        "elseif bit('accepted', index_of(id)) == 1 then C('DEL', 'rq:job:' .. id)",
        "elseif bit('accepted', index_of(id)) == 1 then",
    ),
)
def clean_up_races_an_answer(w: World) -> None:
    hands = leased(w, 0)
    w.tick(3700)
    w.rq_cleanup("chat", by=lambda: w.finish(hands))


@scenario(
    8,
    Mutation(
        "reap",
        "return job[1] == 'started' and 'held' or 'moved'",
        "return 'held'",
    ),
)
def cancel_that_read_queued_races_a_claim(w: World) -> None:
    w.canary([0])
    w.rq_cancel(0, by=lambda: w.claim(0, 1) and None)
    w.tick(61)
    w.reap("chat")
    p = places.read(w)
    assert not set(p.queue) & set(p.canceled), "canceled and queued again"


@scenario(
    9,
    Mutation("enqueue", "or misplaced(id, index) then", "then"),
)
def requeue_by_rq_dies_in_between(w: World) -> None:
    def die() -> None:
        raise world.DiedInBetweenError

    hands = leased(w, 0)
    w.fail(hands[0])
    w.rq_requeue(0, by=die)


@scenario(
    10,
    Mutation(
        "reap",
        "if bit('accepted', index_of(id)) == 1 or C('HEXISTS', 'rq:job:' .. id, 'data') == 0 then",
        "if false then",
    ),
)
def cancel_races_an_answer(w: World) -> None:
    hands = leased(w, 0)
    w.rq_cancel(0, by=lambda: w.finish(hands))


@scenario(
    11,
    Mutation(
        "claim",
        "out[#out + 1] = { index, eid, queue, round_of(index),",
        "out[#out + 1] = { index, eid, queue, tonumber(C('HGET', 'rq:job:' .. id, 'round') or '0'),",
    ),
)
def clean_up_of_a_redo_races_a_delete(w: World) -> None:
    done(w, 0)
    w.requeue([0])
    assert w.claim(0, 1)
    w.tick(3700)
    w.rq_cleanup("chat", by=lambda: w.rq_delete(0))


# --- rounds


@scenario(
    12,
    Mutation(
        "requeue",
        "round == item.round\n",
        "true\n",
    ),
)
def requeue_is_repeated_after_its_answer_came(w: World) -> None:
    done(w, 0)
    w.requeue([0])
    again = w.calls[-1]
    w.finish(w.claim(0, 1))
    w.sink_batch(5)
    w.calls = [again]
    w.repeat_call(0)
    assert w.round(0) == 1, "asked again needlessly"


@scenario(
    13,
    Mutation("requeue", "and C('SISMEMBER', P .. ':redo', id) == 0 then", "then"),
)
def older_round_is_committed_after_a_newer_one(w: World) -> None:
    done(w, 0)
    w.requeue([0])
    w.finish(w.claim(0, 1), bad=True)
    draft = w.read_stream(1)
    assert draft
    w.cut(draft)
    older = w.read_intent(w.open_intents()[0])
    w.requeue([0])
    newer = w.claim(0, 1)
    if newer:
        w.finish(newer)
        draft = w.read_stream(1)
        assert draft
        w.cut(draft)
        last = w.read_intent(w.open_intents()[-1])
        w.tick(6)
        flying = w.start_put(last)
        assert flying
        w.land(flying)
    w.tick(6)
    flying = w.start_put(older)
    assert flying
    w.land(flying)


# --- the sink, and losses


@scenario(
    14,
    Mutation(
        "cut",
        "if #seen ~= A.count or redis.sha1hex(table.concat(seen, ' ')) ~= A.digest then",
        "if false then",
    ),
)
def slow_sink_cuts_what_a_loss_removed(w: World) -> None:
    hands = leased(w, 0, 1, 2)
    w.finish(hands[:1])
    w.snapshot()
    kept = len(w.snapshots) - 1
    w.finish(hands[1:])
    draft = w.read_stream(5)
    w.lose_last_writes(kept)
    assert draft
    w.cut(draft)


@scenario(15, Mutation(ignored=frozenset({"gone"})))
def sink_puts_from_memory_what_a_loss_undid(w: World) -> None:
    hands = leased(w, 0, 1)
    w.finish(hands)
    w.snapshot()
    kept = len(w.snapshots) - 1
    draft = w.read_stream(1)
    assert draft
    w.cut(draft)
    held = w.read_intent(w.open_intents()[0])
    w.lose_last_writes(kept)
    w.tick(6)
    flying = w.start_put(held)
    if flying:
        w.land(flying, crash=True)


@scenario(15, Mutation(ignored=frozenset({"young"})))
def sink_puts_before_the_decision_is_safe(w: World) -> None:
    hands = leased(w, 0, 1)
    w.finish(hands)
    w.snapshot()
    kept = len(w.snapshots) - 1
    draft = w.read_stream(1)
    assert draft
    w.cut(draft)
    held = w.read_intent(w.open_intents()[0])
    flying = w.start_put(held)
    if flying:
        w.land(flying, crash=True)
    w.lose_last_writes(kept)


EPOCH_GUARD = "if A.epoch ~= epoch then return { 'epoch' } end"


@scenario(
    16,
    Mutation("cut", EPOCH_GUARD, ""),
    Mutation(
        "cut",
        "if #seen ~= A.count or redis.sha1hex(table.concat(seen, ' ')) ~= A.digest then",
        "if false then",
    ),
)
def old_sink_cuts_in_the_new_epoch(w: World) -> None:
    hands = leased(w, 0, 1)
    w.finish(hands)
    draft = w.read_stream(5)
    w.lose_everything_and_repair()
    assert draft
    w.cut(draft)


@scenario(16, Mutation("requeue", EPOCH_GUARD, ""))
def requeue_of_the_old_epoch_is_repeated(w: World) -> None:
    done(w, 0)
    w.requeue([0])
    again = w.calls[-1]
    w.lose_everything_and_repair()
    w.calls = [again]
    w.repeat_call(0)
    assert w.round(0) == 0, "a call of the old epoch moved a round"


@scenario(17, Mutation(ignored=frozenset({"gone", "epoch"})))
def old_sink_puts_after_a_repair(w: World) -> None:
    hands = leased(w, 0)
    w.finish(hands)
    draft = w.read_stream(1)
    assert draft
    w.cut(draft)
    held = w.read_intent(w.open_intents()[0])
    w.lose_everything_and_repair()
    flying = w.start_put(held)
    if flying:
        w.land(flying, crash=True)


def play(w: World, chosen: Scenario) -> None:
    chosen.play(w)
    places.check(w)
    places.drain(w)


def name(chosen: Scenario) -> str:
    return f"{chosen.row:02d}-{chosen.play.__name__}"


@pytest.mark.parametrize("chosen", SCENARIOS, ids=name)
def test_with_its_guard_nothing_is_lost_or_double(
    model_client: redis.Redis, chosen: Scenario
) -> None:
    play(World(model_client), chosen)


@pytest.mark.parametrize("chosen", SCENARIOS, ids=name)
def test_without_its_guard_it_is_caught(model_client: redis.Redis, chosen: Scenario) -> None:
    w = World(model_client, chosen.without)
    with pytest.raises(AssertionError):
        play(w, chosen)


def test_every_row_of_the_table_has_a_scenario() -> None:
    assert {chosen.row for chosen in SCENARIOS} == set(range(1, 18))
