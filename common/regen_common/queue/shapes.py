"""What goes into the transitions and comes out of them."""

from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Lease:
    """A consumer's hold on one job; ``eid`` is RQ's execution id."""

    queue: str
    index: int
    eid: str

    def to_args(self) -> dict[str, Any]:
        return {"queue": self.queue, "index": self.index, "eid": self.eid}


class Claimed(NamedTuple):
    """One leased job. ``attempts`` and ``strikes`` are what it was charged with before."""

    lease: Lease
    round: int
    attempts: int
    strikes: int


class Claim(NamedTuple):
    """What a claim brought. ``state``: ``ok``, ``suspended``, ``halted`` or ``backlog``."""

    state: str
    config_version: int
    jobs: list[Claimed]


class Enqueued(NamedTuple):
    """``state``: ``ok``, ``stale`` (another moved the cursor) or ``full``."""

    state: str
    cursor: int
    made: int


class Finished(NamedTuple):
    """An answer to be accepted. ``body`` is the record's line."""

    lease: Lease
    round: int
    mask: int
    output_tokens: int
    latency_s: float
    body: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A record in the results stream."""

    stream_id: str
    index: int
    round: int
    mask: int
    body: bytes


class Committed(NamedTuple):
    """``state``: ``ok``, ``gone`` (it was committed before) or ``corrupt``."""

    state: str
    detail: tuple[int, ...]


class CategoryBooks(NamedTuple):
    """Counts of one category. ``failed`` includes ``failed_redo``."""

    category: str
    plan: int
    enqueued: int
    queued: int
    leased: int
    failed: int
    done: int
    failed_redo: int


class Counted(NamedTuple):
    """What ``books`` counted in one moment."""

    input: int
    rejected: int
    stream: int
    redo: int
    open_intents: int
    suspended: bool
    halt: dict[str, Any] | None
    categories: list[CategoryBooks]
