"""``regen-consume``: parse, wire, run."""

import asyncio
import signal
import socket
from typing import Annotated, Final

import typer
import uvloop

from regen_common import cli, engines
from regen_common.clock import SystemClock
from regen_common.run import opening
from regen_consumer import stall
from regen_consumer.consumer import Consumer, Options
from regen_consumer.engine.client import Engine

PORT_BASE: Final = 30_000
SLOTS_MAX: Final = 4_096

EXAMPLES: Final = """
regen-consume --gpu 0
regen-consume --gpu 3 --engine http://10.0.0.7:30003 --concurrency 64
regen-consume --gpu 0 --run qwen36 --burst
"""


def consume(
    gpu: Annotated[int, typer.Option(min=0, help="The GPU's number; one consumer for each.")],
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    engine: Annotated[
        str | None,
        typer.Option(help="The engine's URL.", show_default="http://127.0.0.1:{30000+N}"),
    ] = None,
    engine_kind: Annotated[str, typer.Option(help="sglang, openai or auto.")] = "auto",
    api_key: Annotated[
        str | None, typer.Option(help="The engine's key.", show_default=False)
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=SLOTS_MAX, help="Slots.")] = 40,
    lease: Annotated[
        float, typer.Option(min=3, help="Seconds until a dead consumer's prompts go to others.")
    ] = 60,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds that SIGTERM leaves for what is in flight.")
    ] = 120,
    stall_s: Annotated[
        float,
        typer.Option(
            "--stall",
            envvar="REGEN_STALL",
            min=1,
            help="Seconds without progress until an engine counts as stuck.",
        ),
    ] = stall.STALL_S_DEFAULT,
    store: cli.StoreOption = None,
    burst: Annotated[
        bool, typer.Option("--burst", help="End when nothing is left to ask.")
    ] = False,
    allow_model_change: Annotated[
        bool, typer.Option("--allow-model-change", help="Accept another model than the run's.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="This machine's name in the status.", show_default="its own")
    ] = None,
    config_file: cli.Config = None,
    allow_volatile_redis: cli.AllowVolatile = False,
    debug: cli.Debug = False,
) -> int:
    """Keep one GPU's engine full until the run is through.

    SIGTERM ends it in order; a second one at once. kill -9 loses only what was in flight.
    """
    url = engine or f"http://127.0.0.1:{PORT_BASE + gpu}"
    engines.base_of(url)
    engines.check_kind(engine_kind)
    opened = opening.open_run(redis, run, allow_volatile=allow_volatile_redis)
    options = Options(
        gpu=gpu,
        host=host or socket.gethostname(),
        slots=concurrency,
        lease_s=lease,
        grace_s=grace,
        stall_s=stall_s,
        burst=burst,
        store=store,
        redis_url=redis,
        allow_model_change=allow_model_change,
    )
    uvloop.run(_run(opened, url, engine_kind, api_key, options))
    return 0


async def _run(
    opened: opening.OpenRun, url: str, kind: str, api_key: str | None, options: Options
) -> None:
    consumer = Consumer(opened, Engine(url, kind=kind, api_key=api_key), options, SystemClock())
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, consumer.leave)
    await consumer.run()


def main() -> None:
    cli.run_command(consume, name="regen-consume", examples=EXAMPLES)


if __name__ == "__main__":
    main()
