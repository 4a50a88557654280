"""Which failed prompts go round again."""

from typing import Any, Final

import orjson

from regen_common import redisio
from regen_common.queue import transitions
from regen_common.run import keys, opening

CHUNK: Final = transitions.RETRY_MAX


def retry(opened: opening.OpenRun, *, class_: str | None = None, dry_run: bool = False) -> int:
    """Send the failed prompts (of one class) round again. Returns how many."""
    back = 0
    for queue in opened.keys.queues:
        ids = _chosen(opened, queue, class_)
        for at in range(0, len(ids), CHUNK):
            chunk = ids[at : at + CHUNK]
            call = transitions.retry(queue=queue, ids=chunk)
            back += len(chunk) if dry_run else opened.queue.execute(call)
    return back


def _chosen(opened: opening.OpenRun, queue: str, class_: str | None) -> list[str]:
    """Job ids in the queue's FailedJobRegistry, of one class if asked for."""
    with redisio.mapped_errors():
        raw: list[Any] = opened.client.zrange(keys.rq_registry("failed", queue), 0, -1)
    ids = [redisio.text(job_id) for job_id in raw]
    if class_ is None or not ids:
        return ids
    chosen = []
    for at in range(0, len(ids), CHUNK):
        chunk = ids[at : at + CHUNK]
        with redisio.mapped_errors():
            texts: list[Any] = opened.client.hmget(opened.keys.failures, chunk)
        chosen += [
            job_id
            for job_id, text in zip(chunk, texts, strict=True)
            if text is not None and orjson.loads(text).get("class") == class_
        ]
    return chosen
