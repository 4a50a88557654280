"""When the run will be through: tokens still to be made over tokens per second. Pure.

Every prompt does not cost the same, so each category counts with its own mean, and the range is
what its observed spread allows (two standard deviations, of the mean and of the sum).
"""

import math
from dataclasses import dataclass
from typing import Final

from regen_ops.status.report import Eta

SIGMAS: Final = 2.0
UNSEEN_FACTOR: Final = 2.0
"""A category without answers may cost half or twice the others' mean."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One category: prompts left, and tokens of the answers so far (count, mean, deviation)."""

    left: int
    answers: int
    mean_tokens: float | None
    deviation: float | None


def work(left: int, answers: int, tokens: float, tokens_sq: float) -> Work:
    """From the counters: sum and sum of squares of output tokens."""
    if answers == 0:
        return Work(left=left, answers=0, mean_tokens=None, deviation=None)
    mean = tokens / answers
    variance = max(0.0, tokens_sq / answers - mean * mean)
    return Work(left=left, answers=answers, mean_tokens=mean, deviation=math.sqrt(variance))


def tokens_left(of: Work, *, fallback: float | None) -> tuple[float, float, float] | None:
    """Low, mid and high for one category; ``fallback``: the other categories' mean."""
    if of.left == 0:
        return 0.0, 0.0, 0.0
    if of.mean_tokens is None or of.deviation is None:
        if fallback is None:
            return None
        mid = of.left * fallback
        return mid / UNSEEN_FACTOR, mid, mid * UNSEEN_FACTOR
    mid = of.left * of.mean_tokens
    of_mean = of.left * of.deviation / math.sqrt(of.answers)
    of_sum = of.deviation * math.sqrt(of.left)
    spread = SIGMAS * math.hypot(of_mean, of_sum)
    return max(0.0, mid - spread), mid, mid + spread


def eta(all_work: list[Work], *, tokens_per_s: float | None) -> Eta:
    """The whole run's; unknown without a rate, or without any answer yet."""
    if all(of.left == 0 for of in all_work):
        return Eta(low=0.0, mid=0.0, high=0.0)
    answers = sum(of.answers for of in all_work)
    total = sum((of.mean_tokens or 0) * of.answers for of in all_work)
    fallback = total / answers if answers else None
    parts = [tokens_left(of, fallback=fallback) for of in all_work]
    if not tokens_per_s or any(part is None for part in parts):
        return Eta(low=None, mid=None, high=None)
    low, mid, high = (
        sum(column) / tokens_per_s for column in zip(*filter(None, parts), strict=True)
    )
    return Eta(low=low, mid=mid, high=high)
