"""What follows from a fault, row by row of the table in policy.py."""

import random

import pytest

from regen_consumer import policy
from regen_consumer.engine.faults import Blame
from regen_consumer.policy import Action


def decide(blame: Blame, **known: object) -> policy.Decision:
    values: dict[str, object] = {
        "engine_well": True, "attempts": 0, "passing_s": 0.0, "retry_after_s": None,
        "rng": random.Random(1),
    }  # fmt: skip
    return policy.decide(blame, **(values | known))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("blame", "known", "action", "charged"),
    [
        (Blame.PROMPT, {}, Action.FAIL, True),
        (Blame.SETUP, {}, Action.STOP, False),
        (Blame.ENGINE, {}, Action.GIVE_BACK, False),
        (Blame.PASSING, {}, Action.AGAIN, False),
        (Blame.PASSING, {"passing_s": 60.0}, Action.GIVE_BACK, False),
        (Blame.UNSURE, {}, Action.AGAIN, True),
        (Blame.UNSURE, {"attempts": 2}, Action.AGAIN, True),
        (Blame.UNSURE, {"attempts": 3}, Action.FAIL, True),
        (Blame.UNSURE, {"engine_well": False}, Action.GIVE_BACK, False),
        (Blame.UNSURE, {"engine_well": False, "attempts": 3}, Action.GIVE_BACK, False),
    ],
)
def test_decisions(blame: Blame, known: dict[str, object], action: Action, charged: bool) -> None:
    decision = decide(blame, **known)
    assert (decision.action, decision.charged) == (action, charged)


def test_four_attempts_pause_for_a_minute_at_most() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        pauses = [decide(Blame.UNSURE, attempts=n, rng=rng).pause_s for n in range(3)]
        assert sum(pauses) <= 60
        assert pauses == sorted(pauses)


def test_a_busy_engine_is_asked_less_and_less_often_and_its_own_wish_counts() -> None:
    first = decide(Blame.PASSING).pause_s
    later = decide(Blame.PASSING, passing_s=30.0).pause_s
    assert 0.5 <= first < later <= policy.PASSING_PAUSE_MAX_S
    assert decide(Blame.PASSING, retry_after_s=20.0).pause_s == 20.0
    assert decide(Blame.PASSING, retry_after_s=9999.0).pause_s == policy.PASSING_PATIENCE_S
