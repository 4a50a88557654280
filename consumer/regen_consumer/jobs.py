"""The function that RQ jobs name. It never runs: regen-consume reads a job's index and answers it.

If a stock ``rq worker`` got at a run's queue, its jobs fail here with the reason and the cure.
"""

from typing import NoReturn

from regen_common import errors


def regenerate(index: int) -> NoReturn:
    """Refuse to run under a worker that is not ours."""
    raise errors.UsageError(
        f"foreign_worker: prompt {index} was taken by a stock rq worker; stop it, "
        "start regen-consume, and send the prompt round again with `rq requeue`"
    )
