"""Everything the report is made of, read from Redis. Nobody else reads counters."""

from dataclasses import dataclass
from typing import Any, Final

from regen_common import redisio
from regen_common.queue import transitions
from regen_common.run import books, config, opening
from regen_ops import failures

FAILURES_READ_MAX: Final = 20_000
GPUS_MAX: Final = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Totals at a moment: answers accepted, and their output tokens."""

    at_s: float
    answers: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """One moment of the run. ``samples``: newest first. ``gpus``: fields as text.

    ``unwritten_since_s``: when the oldest answer came that is not at the destination yet.
    """

    config: config.Config
    books: books.Books
    now_s: float
    stats: dict[str, float]
    samples: list[Sample]
    gpus: list[dict[str, str]]
    failures: list[failures.Failure]
    failures_unread: int
    multi_turn: int
    backlog: int
    unwritten_since_s: float | None


def read(run: opening.OpenRun) -> Raw:
    """Read the run. Below a second at a million prompts: nothing here scans."""
    client, names = run.client, run.keys
    counted = books.from_counted(run.queue.execute(transitions.books()))
    with redisio.mapped_errors():
        pipe: Any = client.pipeline(transaction=False)
        pipe.hgetall(names.stats)
        pipe.lrange(names.rate, 0, -1)
        pipe.zrevrange(names.gpus, 0, GPUS_MAX - 1, withscores=True)
        pipe.bitcount(names.bits("multi_turn"))
        pipe.xrange(names.results, count=1)
        stats, samples, gpus, multi_turn, oldest = pipe.execute()
    numbers = {redisio.text(name): float(value) for name, value in stats.items()}
    found, unread = failures.read(run, most=FAILURES_READ_MAX)
    return Raw(
        config=config.load(client, run.config.run),
        books=counted,
        now_s=redisio.time_s(client),
        stats=numbers,
        samples=[_sample(redisio.text(line)) for line in samples],
        gpus=_gpus(run, gpus),
        failures=found,
        failures_unread=unread,
        multi_turn=multi_turn,
        backlog=int(numbers.get("backlog", 0)),
        unwritten_since_s=_entry_s(oldest[0][0]) if oldest else None,
    )


def _entry_s(entry_id: bytes) -> float:
    """A stream entry's time, in seconds since the epoch."""
    return int(entry_id.split(b"-")[0]) / 1e3


def _sample(line: str) -> Sample:
    at_s, answers, tokens = line.split()
    return Sample(at_s=float(at_s), answers=int(answers), tokens=int(tokens))


def _gpus(run: opening.OpenRun, seen: list[tuple[bytes, float]]) -> list[dict[str, str]]:
    with redisio.mapped_errors():
        pipe: Any = run.client.pipeline(transaction=False)
        for raw_name, _ in seen:
            host, _, number = redisio.text(raw_name).rpartition(":")
            pipe.hgetall(run.keys.gpu(host, int(number)))
        rows = pipe.execute()
    out = []
    for (raw_name, at_s), row in zip(seen, rows, strict=True):
        host, _, number = redisio.text(raw_name).rpartition(":")
        fields = {redisio.text(name): redisio.text(value) for name, value in row.items()}
        gone = {} if fields else {"state": "gone"}
        out.append({"host": host, "gpu": number, "seen_at": str(at_s)} | fields | gone)
    return sorted(out, key=lambda gpu: (gpu["host"], int(gpu["gpu"])))
