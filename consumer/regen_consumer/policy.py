"""What follows from a fault: a pure decision, carried out by :mod:`regen_consumer.work`.

======== ==================== =======================================================
blame    engine afterwards    decision
======== ==================== =======================================================
PROMPT   not asked            fail at once: asking again can't help
SETUP    not asked            stop the consumer, lease back, nobody charged
ENGINE   not asked            lease back without a charge; the engine is probed
PASSING  not asked            wait and ask again, uncharged; after a minute lease back
UNSURE   well                 charged: ask again after a pause, fail at ATTEMPTS_MAX
UNSURE   down or refusing     lease back without a charge
======== ==================== =======================================================
"""

import random
from dataclasses import dataclass
from enum import Enum
from typing import Final

from regen_consumer.engine.faults import Blame

ATTEMPTS_MAX: Final = 4
PAUSES_S: Final = (1.0, 5.0, 20.0)
"""Before the second, third and fourth attempt; with jitter at most 60 s in all."""

JITTER: Final = 0.5
PASSING_PAUSE_MAX_S: Final = 10.0
PASSING_PATIENCE_S: Final = 60.0


class Action(Enum):
    """What to do with the prompt."""

    AGAIN = "again"
    FAIL = "fail"
    GIVE_BACK = "give_back"
    STOP = "stop"


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """``pause_s`` before AGAIN; ``charged``: this try counts as an attempt."""

    action: Action
    charged: bool = False
    pause_s: float = 0.0


def decide(
    blame: Blame,
    *,
    engine_well: bool,
    attempts: int,
    passing_s: float,
    retry_after_s: float | None,
    rng: random.Random,
) -> Decision:
    """``attempts``: charged so far, without this try. ``passing_s``: spent on passing faults."""
    if blame is Blame.PROMPT:
        return Decision(action=Action.FAIL, charged=True)
    if blame is Blame.SETUP:
        return Decision(action=Action.STOP)
    if blame is Blame.PASSING:
        return _passing(passing_s, retry_after_s, rng)
    if blame is Blame.ENGINE or not engine_well:
        return Decision(action=Action.GIVE_BACK)
    if attempts + 1 >= ATTEMPTS_MAX:
        return Decision(action=Action.FAIL, charged=True)
    pause_s = PAUSES_S[min(attempts, len(PAUSES_S) - 1)] * rng.uniform(1, 1 + JITTER)
    return Decision(action=Action.AGAIN, charged=True, pause_s=pause_s)


def _passing(passing_s: float, retry_after_s: float | None, rng: random.Random) -> Decision:
    if passing_s >= PASSING_PATIENCE_S:
        return Decision(action=Action.GIVE_BACK)
    pause_s = max(0.5, passing_s) * rng.uniform(1, 1 + JITTER)
    asked_s = min(retry_after_s or 0.0, PASSING_PATIENCE_S)
    return Decision(action=Action.AGAIN, pause_s=max(asked_s, min(pause_s, PASSING_PAUSE_MAX_S)))
