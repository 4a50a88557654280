"""``regen-requeue``: sends prompts round again."""

from typing import Annotated, Any, Final

import orjson
import typer

from regen_common import cli, errors, redisio
from regen_common.queue import transitions
from regen_common.run import keys, opening

EXAMPLES: Final = """
regen-requeue --failed
regen-requeue --class engine_error
regen-requeue --failed --dry-run
"""
CHUNK: Final = transitions.RETRY_MAX


def requeue(
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    failed: Annotated[bool, typer.Option("--failed", help="All failed prompts.")] = False,
    class_: Annotated[
        str | None, typer.Option("--class", help="Failed prompts of this class only.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    config_file: cli.Config = None,
    debug: cli.Debug = False,
) -> int:
    """Send failed prompts round again, with fresh attempts.

    `rq requeue --queue RUN-chat --all` does the same for one queue, one job at a time.
    """
    if not failed and class_ is None:
        raise errors.UsageError("say which prompts: --failed, or --class NAME")
    opened = opening.open_run(redis, run, allow_volatile=True)
    back = 0
    for queue in opened.keys.queues:
        ids = _chosen(opened, queue, class_)
        for at in range(0, len(ids), CHUNK):
            chunk = ids[at : at + CHUNK]
            call = transitions.retry(queue=queue, ids=chunk)
            back += len(chunk) if dry_run else opened.queue.execute(call)
    print(f"run {run}: {back} prompts {'would go' if dry_run else 'sent'} round again")  # noqa: T201
    return 0


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


def main() -> None:
    cli.run_command(requeue, name="regen-requeue", examples=EXAMPLES)
