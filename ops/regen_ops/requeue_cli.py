"""``regen-requeue``: sends prompts round again."""

from typing import Annotated, Final

import typer

from regen_common import cli, errors
from regen_common.run import opening
from regen_ops import requeue as requeueing

EXAMPLES: Final = """
regen-requeue --failed
regen-requeue --class engine_error
regen-requeue --failed --dry-run
"""


def requeue(
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    failed: Annotated[
        bool, typer.Option("--failed", help="All failed and canceled prompts.")
    ] = False,
    class_: Annotated[
        str | None,
        typer.Option("--class", envvar="REGEN_CLASS", help="Failed prompts of this class only."),
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
    back = requeueing.retry(opened, class_=class_, dry_run=dry_run)
    print(f"run {run}: {back} prompts {'would go' if dry_run else 'sent'} round again")  # noqa: T201
    return 0


def main() -> None:
    cli.run_command(requeue, name="regen-requeue", examples=EXAMPLES)
