"""``regen-run``: parse, wire, show."""

from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.live import Live

from regen_common import cli, engines, errors, log
from regen_common.clock import Clock, SystemClock
from regen_common.objects import open_objects
from regen_common.run import keys
from regen_ops.run import layout, sample, supervisor
from regen_ops.status import text
from regen_ops.status.report import Report

LINE_EVERY_S: Final = 10.0
SHOWN_CHARS: Final = 600
DEMO_MAX_TOKENS: Final = 32
DEMO_SLOTS: Final = 2  # of each of the two consumers

EXAMPLES: Final = """
regen-run --demo --out demo-out
regen-run prompts.jsonl --out ./out --engine http://127.0.0.1:30000
regen-run a.jsonl b.json --out s3://bucket/drafter-data --engine http://gpu0:30000 --engine http://gpu1:30000
"""


def run_all(
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="INPUT", help="Chat datasets.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="s3://bucket/prefix or a folder; where the answers go.")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="An engine's URL; once for each engine.")
    ] = None,
    engine_kind: Annotated[str, typer.Option(help="sglang, openai or auto.")] = "auto",
    demo: Annotated[
        bool, typer.Option("--demo", help="A small model and a few real rows, on this machine.")
    ] = False,
    run: cli.Run = cli.DEFAULT_RUN,
    redis: Annotated[
        str | None,
        typer.Option("--redis", help="Use this Redis.", show_default="one of its own, inside OUT"),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight per engine.")] = 40,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Cap of an answer.", show_default="8192")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Input rows at most.")] = None,
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Use the whole rows of an input cut short.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="First send failed prompts round again.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that halted itself.")
    ] = False,
    config_file: cli.Config = None,
    debug: cli.Debug = False,
) -> int:
    """Regenerate a dataset on this machine: Redis, producer, consumers, sink and status in one.

    Ctrl-C is safe at any moment; the same command goes on where it stopped.
    """
    if out is None:
        raise errors.UsageError(
            "say where the answers go: --out FOLDER or --out s3://bucket/prefix"
        )
    keys.Keys(run=run)  # refuses what is no name
    if demo == bool(inputs):
        raise errors.UsageError("name the input files (or --demo, without any)")
    if not demo and not engine:
        raise errors.UsageError("name the engine: --engine URL, once for each")
    for url in engine or []:
        engines.base_of(url)
    engines.check_kind(engine_kind)
    produce, consume, sink = _flags(
        demo=demo, max_tokens=max_tokens, limit=limit, allow_truncated=allow_truncated
    )
    where = layout.layout(out, run)
    plan = supervisor.Plan(
        run=run,
        inputs=inputs or [],
        layout=where,
        redis=redis,
        engines=engine or [],
        engine_kind="openai" if demo else engine_kind,
        demo=demo,
        produce=produce,
        consume=consume,
        sink=sink,
        concurrency=DEMO_SLOTS if demo else concurrency,
        retry_failed=retry_failed,
        resume=resume,
    )
    with layout.exclusive(where):
        report = _supervise(plan)
    return _last_words(report, plan)


def _flags(
    *, demo: bool, max_tokens: int | None, limit: int | None, allow_truncated: bool
) -> tuple[list[str], list[str], list[str]]:
    """Flags for producer, consumers and sink."""
    produce = ["--allow-truncated"] if allow_truncated else []
    if demo and max_tokens is None:
        max_tokens = DEMO_MAX_TOKENS
    if max_tokens is not None:
        produce += ["--max-tokens", str(max_tokens)]
    if limit is not None:
        produce += ["--limit", str(limit)]
    sink = ["--batch-records", "10", "--batch-seconds", "10"] if demo else []
    return produce, [], sink


def _supervise(plan: supervisor.Plan) -> Report:
    console = Console(stderr=True)
    clock = SystemClock()
    if not console.is_terminal:
        return supervisor.Supervisor(plan, clock=clock, show=_Lines(clock)).run()
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show(report: Report) -> None:
            live.update(text.render(report, redis=running.own_redis), refresh=True)

        running = supervisor.Supervisor(plan, clock=clock, show=show)
        return running.run()


class _Lines:
    """Progress for those without a terminal: one line per interval."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_s = 0.0

    def __call__(self, report: Report) -> None:
        if self._clock.monotonic_s() < self._next_s:
            return
        self._next_s = self._clock.monotonic_s() + LINE_EVERY_S
        log.info(
            "progress",
            state=report.state,
            done=report.totals.done,
            pending=report.totals.pending,
            failed=report.totals.failed,
            of=report.totals.input,
            tok_s=report.rates.output_tokens_per_s.recent or "unknown",
            through_in=text.duration(report.eta_s.mid),
        )


def _last_words(report: Report, plan: supervisor.Plan) -> int:
    console = Console()
    console.print(text.render(report, over=plan.redis is None))
    objects = open_objects(plan.layout.destination)
    found = sample.first(objects, plan.run)
    if found is not None:
        _show_sample(console, found)
    console.print(
        f"\nResults   {objects.url}/{plan.run}/batches/*.jsonl.zst   (one JSON record per line)"
        f"\nLogs      {plan.layout.logs}",
        highlight=False,
        soft_wrap=True,
    )
    if report.state == "halted":
        raise errors.RegenError(
            f"the run halted itself: {(report.halt or {}).get('detail')}; look at the answers; "
            "the same command with --resume goes on, another --out begins anew"
        )
    if report.totals.failed:
        raise errors.RegenError(
            f"{text.counted(report.totals.failed, 'prompt', 'prompts')} failed (classes above); "
            "the same command with --retry-failed goes on with them"
        )
    return 0


def _show_sample(console: Console, record: dict[str, Any]) -> None:
    """One prompt and its answer."""
    asked = next(m for m in reversed(record["messages"]) if m["role"] == "user")["content"]
    completion = record["completion"]
    console.print(f"\n[bold]One of them[/bold]  prompt {record['index']} ({record['source']})")
    for who, said in (
        ("asked", asked),
        ("thought", completion["reasoning"]),
        ("answered", completion["content"]),
    ):
        if said:
            short = said if len(said) <= SHOWN_CHARS else said[:SHOWN_CHARS] + " ..."
            console.print(f"  [dim]{who:9}[/dim]", end="")
            console.print(short, markup=False, highlight=False)
    if record["quality"]:
        console.print(f"  [dim]labels[/dim]    {', '.join(record['quality'])}")


def main() -> None:
    cli.run_command(run_all, name="regen-run", examples=EXAMPLES)


if __name__ == "__main__":
    main()
