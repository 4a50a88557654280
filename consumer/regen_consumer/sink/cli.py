"""``regen-sink``: parse, wire, run."""

import signal
import threading
from typing import Annotated, Final

import typer

from regen_common import cli, errors, log
from regen_common.clock import SystemClock
from regen_common.objects import open_objects
from regen_common.run import config, opening
from regen_consumer.sink import codecs, cutting
from regen_consumer.sink.sink import Sink

POLL_S: Final = 0.3
REDIS_PAUSE_S: Final = 2.0
BATCH_RECORDS_MAX: Final = 2_000

EXAMPLES: Final = """
regen-sink --to s3://bucket/drafter-data
regen-sink --to ./out --batch-seconds 10
regen-sink --run qwen36 --burst
"""


def sink(
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    to: Annotated[
        str | None,
        typer.Option(help="s3://bucket/prefix or a folder.", show_default="the run's destination"),
    ] = None,
    batch_records: Annotated[int, typer.Option(min=1, max=BATCH_RECORDS_MAX)] = 500,
    batch_bytes: Annotated[str, typer.Option(help="Of a batch, before compression.")] = "64MiB",
    batch_seconds: Annotated[float, typer.Option(min=0.1, help="A record's age at most.")] = 60,
    compress: Annotated[str, typer.Option(help="zstd, gzip or none.")] = "zstd",
    endpoint_url: Annotated[
        str | None, typer.Option(help="The S3 service, if not AWS.", show_default="the run's")
    ] = None,
    max_backlog: Annotated[
        str | None,
        typer.Option(help="Of the results stream; beyond it consumers stop claiming."),
    ] = None,
    burst: Annotated[bool, typer.Option(help="End when the run is over and written.")] = False,
    config_file: cli.Config = None,
    allow_volatile_redis: cli.AllowVolatile = False,
    debug: cli.Debug = False,
) -> int:
    """Write the run's answers to its destination, exactly once.

    Several sinks may run at once; any of them carries on what another left.
    """
    limits = cutting.Limits(
        records=batch_records,
        bytes=cli.parse_size(batch_bytes, flag="--batch-bytes"),
        age_s=batch_seconds,
    )
    codecs.check(compress)
    opened = opening.open_run(redis, run, allow_volatile=allow_volatile_redis)
    if max_backlog is not None:
        size = cli.parse_size(max_backlog, flag="--max-backlog")
        config.change(opened.client, opened.queue, {"max_backlog": size}, who="regen-sink")
    where = _destination(opened, to)
    service = endpoint_url or opened.config["endpoint_url"]
    objects = open_objects(where, endpoint_url=service)
    objects.check()
    the_sink = Sink(opened, objects, limits=limits, codec=compress, clock=SystemClock())
    the_sink.open()
    _remember(opened, where, service)
    log.info("sink_started", run=run, to=objects.url)
    _loop(the_sink, burst=burst)
    log.info("sink_ended", batches=the_sink.batches, bytes=the_sink.bytes)
    return 0 if the_sink.healthy else 1


def _destination(opened: opening.OpenRun, to: str | None) -> str:
    known = opened.config["destination"]
    if to is None and known is None:
        raise errors.UsageError(
            f"run {opened.config.run!r} has no destination yet; name one with --to"
        )
    if to is None:
        return str(known)
    given = open_objects(to, endpoint_url=opened.config["endpoint_url"]).url
    if known is not None and given != known:
        raise errors.RunMismatchError(
            f"--to {given}: run {opened.config.run!r} writes to {known}; leave --to away, or "
            f"change it for all new batches with `regen-config set destination={given}`"
        )
    return given


def _remember(opened: opening.OpenRun, where: str, service: str | None) -> None:
    """The first sink's destination becomes the run's."""
    values = {"destination": where}
    if service is not None:
        values["endpoint_url"] = service
    config.change(opened.client, opened.queue, values, who="regen-sink")


def _loop(the_sink: Sink, *, burst: bool) -> None:
    """Until a signal, or with ``burst`` until the run is over.

    Order of leaving: nothing new is started; PUTs under way end (bounded by their deadline) and are
    committed; the manifest is written last, since it tells what the ledger knows.
    """
    stop = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stop.set())
    flush = False
    while not stop.is_set():
        try:
            on_its_way = the_sink.step(flush=flush)
            if burst and not on_its_way and the_sink.over():
                break
            flush = burst and the_sink.nothing_to_come()
        except (errors.RedisUnavailableError, errors.RedisReadOnlyError) as error:
            log.waiting("redis_waited_for", error=str(error))
            stop.wait(REDIS_PAUSE_S)
        stop.wait(POLL_S)
    while the_sink.step(flush=False, leaving=True):
        SystemClock().sleep(POLL_S)
    the_sink.close()


def main() -> None:
    cli.run_command(sink, name="regen-sink", examples=EXAMPLES)


if __name__ == "__main__":
    main()
