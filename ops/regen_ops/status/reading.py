"""Everything the report is made of, read from Redis. Nobody else reads counters."""

import zlib
from base64 import b64decode
from dataclasses import dataclass
from typing import Any, Final

import orjson

from regen_common import redisio
from regen_common.queue import transitions
from regen_common.run import books, config, keys, opening

FAILURES_READ_MAX: Final = 20_000
GPUS_MAX: Final = 512
CHUNK: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Totals at a moment: answers accepted, and their output tokens."""

    at_s: float
    answers: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    index: int
    klass: str
    detail: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """One moment of the run. ``samples``: newest first. ``gpus``: fields as text."""

    config: config.Config
    books: books.Books
    now_s: float
    stats: dict[str, float]
    samples: list[Sample]
    gpus: list[dict[str, str]]
    failures: list[Failure]
    failures_unread: int
    multi_turn: int
    backlog: int


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
        stats, samples, gpus, multi_turn = pipe.execute()
    numbers = {redisio.text(name): float(value) for name, value in stats.items()}
    failures, unread = _failures(run)
    return Raw(
        config=config.load(client, run.config.run),
        books=counted,
        now_s=redisio.time_s(client),
        stats=numbers,
        samples=[_sample(redisio.text(line)) for line in samples],
        gpus=_gpus(run, gpus),
        failures=failures,
        failures_unread=unread,
        multi_turn=multi_turn,
        backlog=int(numbers.get("backlog", 0)),
    )


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


def _failures(run: opening.OpenRun) -> tuple[list[Failure], int]:
    """Members of RQ's registries, with what is known of each; and how many were not read."""
    out, unread = [], 0
    for queue in run.keys.queues:
        for registry in ("failed", "canceled"):
            key = keys.rq_registry(registry, queue)
            with redisio.mapped_errors():
                total = run.client.zcard(key)
                ids: list[Any] = run.client.zrange(key, 0, FAILURES_READ_MAX - 1)
            unread += max(0, int(total) - len(ids))
            for at in range(0, len(ids), CHUNK):
                out += _described(run, [redisio.text(i) for i in ids[at : at + CHUNK]], registry)
    return out, unread


def _described(run: opening.OpenRun, ids: list[str], registry: str) -> list[Failure]:
    with redisio.mapped_errors():
        pipe: Any = run.client.pipeline(transaction=False)
        pipe.hmget(run.keys.failures, ids)
        for job_id in ids:
            pipe.sismember(run.keys.redo, job_id)
        described, *redo = pipe.execute()
    out = []
    for job_id, text, again in zip(ids, described, redo, strict=True):
        if again:  # its old answer counts: it is done
            continue
        if text is None:
            out.append(_undescribed(run, job_id, registry))
            continue
        known = orjson.loads(text)
        out.append(
            Failure(
                index=keys.index_of(job_id),
                klass=known.get("class", "unknown"),
                detail=known.get("detail"),
            )
        )
    return out


def _undescribed(run: opening.OpenRun, job_id: str, registry: str) -> Failure:
    """Not failed by us: canceled by hand, or by RQ or a stock worker."""
    index = keys.index_of(job_id)
    if registry == "canceled":
        return Failure(index=index, klass="canceled", detail="canceled with an rq command")
    with redisio.mapped_errors():
        last: Any = run.client.xrevrange(f"rq:results:{job_id}", count=1)
    fields = last[0][1] if last else {}
    raw = fields.get(b"exc_string")
    text = zlib.decompress(b64decode(raw)).decode() if raw else ""
    klass = "foreign_worker" if "foreign_worker" in text or fields else "abandoned"
    return Failure(index=index, klass=klass, detail=text.strip().splitlines()[-1] if text else None)
