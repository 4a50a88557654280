"""Keeps the queues filled from the cursors, and brings back jobs that are in no place.

Producer and consumers both call this; the scripts' guards make it safe for many at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import redis

from regen_common import redisio
from regen_common.queue import executor, transitions
from regen_common.run import keys

CHUNK_BYTES: Final = 8_192
"""Of each bitmap, read at a time: 65,536 prompts."""

LIST_CHUNK: Final = 10_000


def members(
    *, first: int, tools: bytes, excluded: tuple[bytes, ...], size: int, category: str
) -> list[int]:
    """Indices of the category in a chunk of bitmaps that begins at index ``first``.

    ``excluded`` bitmaps take indices out. Bitmaps are as Redis keeps them, most significant bit
    first, and may be shorter than the chunk. ``size`` is how many indices the chunk spans.
    """
    n_bytes = (size + 7) // 8

    def number(bits: bytes) -> int:
        return int.from_bytes(bits[:n_bytes].ljust(n_bytes, b"\0"), "big")

    every = (1 << (n_bytes * 8)) - 1
    chosen = number(tools) if category == "tools" else every ^ number(tools)
    for bits in excluded:
        chosen &= every ^ number(bits)
    text = f"{chosen:0{n_bytes * 8}b}"[:size]
    out = []
    at = text.find("1")
    while at >= 0:
        out.append(first + at)
        at = text.find("1", at + 1)
    return out


@dataclass(frozen=True, kw_only=True, slots=True)
class Filled:
    """How a filling ended. ``at_end``: every cursor has passed the input's last row."""

    made: int
    at_end: bool
    full: bool


class TopUp:
    """One process's view of the cursors. ``size`` is the number of input rows."""

    def __init__(
        self, client: redis.Redis, queue: executor.Queue, *, size: int, max_queued: int
    ) -> None:
        self._client = client
        self._queue = queue
        self._keys = keys.Keys(run=queue.run)
        self._size = size
        self._max_queued = max_queued
        self._at: dict[str, _Ahead] = {}

    def fill(self, *, calls_max: int) -> Filled:
        """Make jobs, category by category in turn, until full, at the end, or ``calls_max``."""
        made, open_categories = 0, list(keys.CATEGORIES)
        for turn in range(calls_max):
            if not open_categories:
                break
            room = self._room()
            if room <= 0:
                return Filled(made=made, at_end=False, full=True)
            category = open_categories[turn % len(open_categories)]
            got = self._step(category, room)
            if got is None:
                open_categories.remove(category)
            else:
                made += got
        return Filled(made=made, at_end=not open_categories, full=False)

    def _room(self) -> int:
        with redisio.mapped_errors():
            pipe = self._client.pipeline(transaction=False)
            for queue in self._keys.queues:
                pipe.llen(keys.rq_queue(queue))
            lengths: list[int] = pipe.execute()
        return self._max_queued - sum(lengths)

    def _step(self, category: str, room: int) -> int | None:
        """One enqueue call; ``None`` at the end of the category."""
        with redisio.mapped_errors():
            cursor = int(self._client.get(self._keys.cursor(category)) or 0)
        if cursor >= self._size:
            return None
        ahead = self._at.get(category)
        if ahead is None or not ahead.first <= cursor < ahead.end:
            ahead = self._at[category] = self._read_ahead(category, cursor)
        batch = ahead.take(cursor, min(transitions.ENQUEUE_MAX, room))
        out = self._queue.execute(
            transitions.enqueue(
                category=category, indices=batch.indices, expected=cursor, new=batch.new
            )
        )
        return out.made

    def _read_ahead(self, category: str, cursor: int) -> "_Ahead":
        """The first chunk from the cursor on that has members, or the end."""
        first = cursor - cursor % 8
        while True:
            span = min(CHUNK_BYTES * 8, self._size - first)
            tools, rejected = read_bits(
                self._client, self._keys, ("tools", "rejected"), first, span
            )
            indices = members(
                first=first, tools=tools, excluded=(rejected,), size=span, category=category
            )
            if indices or first + span >= self._size:
                return _Ahead(first=cursor, end=first + span, indices=indices)
            first += span


@dataclass(frozen=True, kw_only=True, slots=True)
class _Batch:
    indices: list[int]
    new: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ahead:
    """Members of one category in [first, end), in order."""

    first: int
    end: int
    indices: list[int]

    def take(self, cursor: int, n: int) -> _Batch:
        left = [index for index in self.indices if index >= cursor]
        batch = left[:n]
        return _Batch(indices=batch, new=self.end if len(left) <= n else batch[-1] + 1)


def read_bits(
    client: redis.Redis, names: keys.Keys, wanted: tuple[str, ...], first: int, span: int
) -> list[bytes]:
    """Chunks of the bitmaps from index ``first`` (a multiple of 8) on, ``span`` indices long."""
    with redisio.mapped_errors():
        pipe = client.pipeline(transaction=False)
        for name in wanted:
            pipe.getrange(names.bits(name), first // 8, (first + span + 7) // 8 - 1)
        return list(pipe.execute())


class Sweep:
    """Looks for jobs that are in no place, a slice at a time, and puts them back.

    First without looking through the queue lists, then (a second round) with it.
    """

    def __init__(self, client: redis.Redis, queue: executor.Queue, *, size: int) -> None:
        self._client = client
        self._queue = queue
        self._keys = keys.Keys(run=queue.run)
        self._size = size

    def run(self, *, deep: bool) -> Iterator[int]:
        """Yields the number of jobs put back after each call, so that the caller can pace it."""
        listed = self._listed() if deep else None
        for first in range(0, self._size, CHUNK_BYTES * 8):
            span = min(CHUNK_BYTES * 8, self._size - first)
            for category in keys.CATEGORIES:
                suspects = self._suspects(category, first, span)
                if listed is not None:
                    suspects = [i for i in suspects if i not in listed]
                for at in range(0, len(suspects), transitions.ENQUEUE_MAX):
                    batch = suspects[at : at + transitions.ENQUEUE_MAX]
                    call = transitions.enqueue(category=category, indices=batch, deep=deep)
                    yield self._queue.execute(call).made

    def _suspects(self, category: str, first: int, span: int) -> list[int]:
        """Prompts that were enqueued and have no answer."""
        wanted = ("tools", "rejected", "accepted", "enqueued")
        tools, rejected, accepted, enqueued = read_bits(
            self._client, self._keys, wanted, first, span
        )
        n_bytes = (span + 7) // 8
        never = bytes(0xFF ^ byte for byte in enqueued.ljust(n_bytes, b"\0"))
        return members(
            first=first,
            tools=tools,
            excluded=(rejected, accepted, never),
            size=span,
            category=category,
        )

    def _listed(self) -> set[int]:
        out: set[int] = set()
        for queue in self._keys.queues:
            at = 0
            while True:
                with redisio.mapped_errors():
                    ids = self._client.lrange(keys.rq_queue(queue), at, at + LIST_CHUNK - 1)
                out.update(keys.index_of(redisio.text(job_id)) for job_id in ids)
                if len(ids) < LIST_CHUNK:
                    break
                at += LIST_CHUNK
        return out
