"""Sending failed prompts round again."""

from collections import defaultdict

from regen_common.queue import transitions
from regen_common.run import opening
from regen_ops import failures


def retry(opened: opening.OpenRun, *, class_: str | None = None, dry_run: bool = False) -> int:
    """Send the failed prompts (of one class) round again. Returns how many."""
    chosen: dict[str, list[str]] = defaultdict(list)
    for failure in failures.every(opened, redo_too=True):
        if class_ in (None, failure.klass):
            chosen[failure.queue].append(failure.job_id)
    if dry_run:
        return sum(len(ids) for ids in chosen.values())
    back = 0
    for queue, ids in chosen.items():
        for at in range(0, len(ids), transitions.RETRY_MAX):
            call = transitions.retry(queue=queue, ids=ids[at : at + transitions.RETRY_MAX])
            back += opened.queue.execute(call)
    return back
