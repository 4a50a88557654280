"""The failed prompts of a run: members of RQ's registries, joined with what is known of each.

Joined by membership, so that no stock ``rq`` command can make this lie.
"""

import itertools
import zlib
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from regen_common import redisio
from regen_common.run import keys, opening

REGISTRIES: Final = ("failed", "canceled")
CHUNK: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One failed or canceled prompt. ``klass`` is its failure class."""

    index: int
    job_id: str
    queue: str
    klass: str
    detail: str | None


def read(run: opening.OpenRun, *, most: int) -> tuple[list[Failure], int]:
    """Up to ``most`` failures, and how many there are beyond."""
    found = list(itertools.islice(every(run), most))
    if len(found) < most:
        return found, 0
    with redisio.mapped_errors():
        pipe: Any = run.client.pipeline(transaction=False)
        for queue, registry in itertools.product(run.keys.queues, REGISTRIES):
            pipe.zcard(keys.rq_registry(registry, queue))
        return found, max(0, sum(pipe.execute()) - most)


def every(run: opening.OpenRun, *, redo_too: bool = False) -> Iterator[Failure]:
    """All failures. A redo that failed is done by its old answer: only with ``redo_too``."""
    for queue, registry in itertools.product(run.keys.queues, REGISTRIES):
        with redisio.mapped_errors():
            raw: list[Any] = run.client.zrange(keys.rq_registry(registry, queue), 0, -1)
        ids = [redisio.text(job_id) for job_id in raw]
        for at in range(0, len(ids), CHUNK):
            chunk = ids[at : at + CHUNK]
            yield from _described(run, queue, registry, chunk, redo_too=redo_too)


def _described(
    run: opening.OpenRun, queue: str, registry: str, ids: list[str], *, redo_too: bool
) -> Iterator[Failure]:
    with redisio.mapped_errors():
        pipe: Any = run.client.pipeline(transaction=False)
        pipe.hmget(run.keys.failures, ids)
        for job_id in ids:
            pipe.sismember(run.keys.redo, job_id)
        texts, *redo = pipe.execute()
    for job_id, text, is_redo in zip(ids, texts, redo, strict=True):
        if is_redo and not redo_too:
            continue
        klass, detail = _why(run, job_id, registry, text)
        yield Failure(
            index=keys.index_of(job_id), job_id=job_id, queue=queue, klass=klass, detail=detail
        )


def _why(
    run: opening.OpenRun, job_id: str, registry: str, text: bytes | None
) -> tuple[str, str | None]:
    if registry == "canceled":
        return "canceled", "canceled with an rq command"
    if text is not None:
        known = orjson.loads(text)
        return known.get("class", "unknown"), known.get("detail")
    return _not_by_us(run, job_id)


def _not_by_us(run: opening.OpenRun, job_id: str) -> tuple[str, str | None]:
    """Failed by RQ's clean-up, or by a stock worker, which leaves a result."""
    with redisio.mapped_errors():
        last: Any = run.client.xrevrange(f"rq:results:{job_id}", count=1)
    if not last:
        return "abandoned", None
    raw = last[0][1].get(b"exc_string")
    said = zlib.decompress(b64decode(raw)).decode().strip() if raw else ""
    return "foreign_worker", said.splitlines()[-1] if said else None
