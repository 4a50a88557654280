"""``regen-resume``: lets a halted run claim again."""

from typing import Final

from regen_common import cli
from regen_common.queue import transitions
from regen_common.run import opening

EXAMPLES: Final = """
regen-resume
regen-resume --run qwen36
"""


def resume(
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    config_file: cli.Config = None,
    debug: cli.Debug = False,
) -> int:
    """Clear this run's halt and begin the quality window anew.

    If nothing was mended the run halts again after the next answers; `regen-config get halt_on`
    shows the rule.
    """
    opened = opening.open_run(redis, run, allow_volatile=True)
    was_halted = opened.queue.execute(transitions.resume())
    print(f"run {run}: {'goes on' if was_halted else 'was not halted'}")  # noqa: T201
    return 0


def main() -> None:
    cli.run_command(resume, name="regen-resume", examples=EXAMPLES)
