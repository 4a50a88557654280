"""In which order the queues are pulled: at random, by weight, anew for each claim."""

import random
from collections.abc import Mapping
from typing import Final

WEIGHT_MIN: Final = 1e-3
"""A category that looks finished is still asked now and then: counters lag behind queues."""


def weights(remaining: Mapping[str, int], chosen: Mapping[str, float] | None) -> dict[str, float]:
    """Share of the remaining prompts per category, or what ``--weights`` asked for."""
    if chosen:
        return dict(chosen)
    total = sum(remaining.values()) or 1
    return {category: max(left / total, WEIGHT_MIN) for category, left in remaining.items()}


def order(by_weight: Mapping[str, float], rng: random.Random) -> list[str]:
    """A permutation in which each category is first in proportion to its weight.

    Efraimidis and Spirakis: sort by ``u ** (1 / weight)``, u uniform in (0, 1).
    """
    return sorted(by_weight, key=lambda name: rng.random() ** (1 / by_weight[name]), reverse=True)
