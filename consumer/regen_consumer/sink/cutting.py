"""When a batch is cut, and how much of what was read it takes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from regen_common.queue.shapes import Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """A batch is cut when one of these is reached. ``bytes`` are uncompressed."""

    records: int
    bytes: int
    age_s: float


def due(entries: Sequence[Entry], limits: Limits, *, redis_time_s: float, flush: bool) -> int:
    """How many of the oldest entries make a batch now; 0: wait for more.

    ``flush``: nothing more will come, so a smaller batch is cut too. A record larger than the
    limit in bytes makes a batch of its own.
    """
    size = 0
    for n, entry in enumerate(entries):
        size += len(entry.body) + 1
        if size > limits.bytes:
            return max(n, 1)
        if n + 1 == limits.records:
            return limits.records
    if entries and (flush or redis_time_s - written_s(entries[0]) >= limits.age_s):
        return len(entries)
    return 0


def written_s(entry: Entry) -> float:
    """When Redis took the record, in seconds since the Unix epoch."""
    return int(entry.stream_id.partition("-")[0]) / 1000
