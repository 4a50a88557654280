"""The quality window in ``finish``: when a run halts itself, and when not."""

import redis

import helpers
from regen_common.queue import transitions
from regen_common.records import labels
from regen_common.run import books, opening

RULE = {"labels": ["empty", "trivial"], "rate": 0.2, "window": 50, "min_answers": 20}
TRIVIAL = labels.mask_of(["trivial"])
TRUNCATED = labels.mask_of(["truncated"])


def halted(opened: opening.OpenRun) -> dict[str, object] | None:
    return books.from_counted(opened.queue.execute(transitions.books())).halt


def test_it_waits_for_enough_answers_and_then_halts(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=100, halt_on=RULE)
    helpers.answer(opened, list(range(19)), masks=dict.fromkeys(range(19), TRIVIAL))
    assert halted(opened) is None
    helpers.answer(opened, [19])
    halt = halted(opened)
    assert halt is not None
    assert halt["why"] == "quality"
    assert halt["detail"] == "19 of the last 20 answers were empty or trivial"
    opened.queue.execute(transitions.enqueue(category="chat", indices=[20]))
    claim = transitions.claim(
        queues=[opened.keys.queue("chat")], n=1, token="t", worker="w", lease_s=60
    )
    assert opened.queue.execute(claim).state == "halted"
    assert opened.queue.execute(transitions.resume()) is True
    assert opened.queue.execute(claim).state == "ok"
    assert opened.queue.execute(transitions.resume()) is False


def test_other_labels_do_not_count(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=100, halt_on=RULE)
    helpers.answer(opened, list(range(50)), masks=dict.fromkeys(range(50), TRUNCATED))
    assert halted(opened) is None


def test_only_the_newest_answers_count(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=100, halt_on=RULE)
    helpers.answer(opened, list(range(60)), masks=dict.fromkeys(range(9), TRIVIAL))
    assert halted(opened) is None  # 9 of the newest 50 would have been enough at the beginning
    helpers.answer(opened, list(range(60, 71)), masks=dict.fromkeys(range(60, 70), TRIVIAL))
    assert halted(opened) is not None


def test_without_a_rule_nothing_halts(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=100, halt_on="off")
    helpers.answer(opened, list(range(90)), masks=dict.fromkeys(range(90), TRIVIAL))
    assert halted(opened) is None
