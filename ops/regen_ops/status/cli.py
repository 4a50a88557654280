"""``regen-status``: parse, read, print."""

import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from regen_common import cli, errors
from regen_common.clock import SystemClock
from regen_common.run import opening
from regen_ops.status import building, reading, report, text

EXAMPLES: Final = """
regen-status
regen-status --watch
regen-status --run qwen36 --json | jq .totals
"""


def status(
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    watch: Annotated[bool, typer.Option(help="Keep showing it, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
    json: cli.Json = False,
    config_file: cli.Config = None,
    debug: cli.Debug = False,
) -> int:
    """Tell the truth about a run: books, speed, ETA, GPUs, quality, failures, concerns."""
    opened = opening.open_run(redis, run, allow_volatile=True)

    def look() -> report.Report:
        return building.build(reading.read(opened))

    if json:
        sys.stdout.buffer.write(report.to_json(look()) + b"\n")
        return 0
    console = Console()
    if not watch:
        console.print(text.render(look()))
        return 0
    with Live(text.render(look()), console=console, screen=console.is_terminal) as live:
        try:
            while True:
                SystemClock().sleep(every)
                live.update(_page(look))
        except KeyboardInterrupt:
            return 0


def _page(look: Callable[[], report.Report]) -> RenderableType:
    """The report; or, while Redis is away, that it is."""
    try:
        return text.render(look())
    except errors.RedisUnavailableError as error:
        return Text(f"waiting: {error}", style="yellow")


def main() -> None:
    cli.run_command(status, name="regen-status", examples=EXAMPLES)
