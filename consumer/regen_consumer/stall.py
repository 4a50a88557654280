"""Is the engine stuck? Judged by lack of progress, never by how long one answer takes. Pure."""

from dataclasses import dataclass
from typing import Final

STALL_S_DEFAULT: Final = 300.0
"""Without progress of the engine's own token counters (SGLang's watchdog has the same)."""

BLIND_FACTOR: Final = 12
"""Where the engine shows no counters only whole answers show progress: an hour by default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """What was seen at ``at_s``: the engine's token counters (None: it shows none), and how many
    answers and faults it gave so far."""

    at_s: float
    tokens: int | None
    answers: int
    in_flight: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """The last sign of life."""

    last: Sign | None = None
    moved_at_s: float = 0.0


def look(watch: Watch, sign: Sign) -> Watch:
    """The watch after another sign."""
    last = watch.last
    moved = (
        last is None
        or sign.in_flight == 0
        or last.in_flight == 0
        or sign.answers != last.answers
        or sign.tokens != last.tokens
    )
    return Watch(last=sign, moved_at_s=sign.at_s if moved else watch.moved_at_s)


def stalled(watch: Watch, *, stall_s: float) -> bool:
    """Has nothing moved for too long, while there was something to do?"""
    if watch.last is None or watch.last.in_flight == 0:
        return False
    blind = watch.last.tokens is None
    limit_s = stall_s * (BLIND_FACTOR if blind else 1)
    return watch.last.at_s - watch.moved_at_s >= limit_s
