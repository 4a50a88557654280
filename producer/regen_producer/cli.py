"""``regen-produce``: parse, wire, tell."""

import functools
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import redis as redis_py
import typer

from regen_common import cli, errors, log, redisio
from regen_common.objects import open_objects
from regen_common.run import config, keys, manifest
from regen_producer import enqueue, intake
from regen_producer.progress import Progress

EXAMPLES: Final = """
regen-produce sharegpt.json --to s3://bucket/drafter-data
regen-produce a.jsonl b.jsonl --run qwen36 --max-tokens 16384 --to ./out
regen-produce sharegpt.json --dry-run --dump rows.jsonl
"""


def produce(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", help="Chat datasets, in this order.")
    ],
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    store: Annotated[
        str | None,
        typer.Option(help="Where the prompt store goes.", show_default="./regen-data/{run}"),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="The run's destination: s3://bucket/prefix or a folder.")
    ] = None,
    endpoint_url: Annotated[
        str | None, typer.Option(help="The destination's S3 service, if not AWS.")
    ] = None,
    turns: Annotated[
        str, typer.Option(help="strip: system and user turns only, answered once.")
    ] = "strip",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Input rows at most; may be raised later.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Cap of an answer. 8192 cuts long thinking short: for models that think at "
            "length their cards advise 32768.",
            show_default="8192",
        ),
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    top_p: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    top_k: Annotated[int | None, typer.Option(min=-1)] = None,
    min_p: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    presence_penalty: Annotated[float | None, typer.Option(min=-2, max=2)] = None,
    repetition_penalty: Annotated[float | None, typer.Option(min=0, max=2)] = None,
    thinking: Annotated[
        str | None,
        typer.Option(help="on, off or auto.", show_default="auto: as the template has it"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Each request gets a seed made of this, index and round.")
    ] = None,
    extra_body: Annotated[
        str | None, typer.Option(help="JSON object, merged into each request.")
    ] = None,
    chat_template_kwargs: Annotated[
        str | None, typer.Option(help="JSON object for the chat template.")
    ] = None,
    max_queued: Annotated[
        int | None, typer.Option(min=1, help="Jobs in Redis at most.", show_default="1000000")
    ] = None,
    max_prompt_chars: Annotated[
        int | None, typer.Option(min=1, help="Reject longer prompts as too_long.")
    ] = None,
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="Reject repeated prompts as duplicate_prompt.")
    ] = False,
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Use the whole rows of an input cut short.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count; touch neither Redis nor a store.")
    ] = False,
    dump: Annotated[
        Path | None, typer.Option(help="Write one JSON line per row to this file.")
    ] = None,
    config_file: cli.Config = None,
    allow_volatile_redis: cli.AllowVolatile = False,
    debug: cli.Debug = False,
) -> int:
    """Read a chat dataset and fill the run's queues with its prompts.

    Ends when the queues are full (consumers keep them so) or every prompt is queued. The same
    command again tops up; killed at any moment, it goes on.
    """
    names = keys.Keys(run=run)
    folder = Path(store).expanduser().absolute() if store else Path.cwd() / "regen-data" / run
    read = functools.partial(
        intake.run_intake,
        inputs=inputs,
        store=folder,
        run=run,
        limit=limit,
        turns=turns,
        allow_truncated=allow_truncated,
        dedupe=dedupe,
        max_prompt_chars=max_prompt_chars,
        dump=dump,
        dry_run=dry_run,
    )
    if dry_run:
        with Progress() as progress:
            found = read(progress=progress.read)
        _tell(found)
        return 0
    given = _given(
        sampling={
            "temperature": temperature,
            "top_p": top_p,
            "top_k": top_k,
            "min_p": min_p,
            "presence_penalty": presence_penalty,
            "repetition_penalty": repetition_penalty,
        },
        max_tokens=max_tokens,
        thinking=thinking,
        seed=seed,
        extra_body=_json(extra_body, "--extra-body"),
        chat_template_kwargs=_json(chat_template_kwargs, "--chat-template-kwargs"),
        max_queued=max_queued,
        endpoint_url=endpoint_url,
    )
    # what can be wrong is found before the long reading begins
    if to is not None:
        given["destination"] = open_objects(to, endpoint_url=endpoint_url).url
    client = redisio.connect(redis)
    redisio.check_server(client, allow_volatile=allow_volatile_redis)
    _check_existing(client, run, folder, given, named_store=store is not None)
    with Progress() as progress:
        found = read(progress=progress.read)
    _tell(found)
    _enqueue(client, names, found, folder, given)
    return 0


def _given(*, sampling: dict[str, Any], **values: Any) -> dict[str, Any]:
    """The configuration that flags asked for, checked."""
    chosen = {name: value for name, value in sampling.items() if value is not None}
    out = {name: value for name, value in values.items() if value is not None}
    if chosen:
        out["sampling"] = chosen
    return {name: config.checked(name, value) for name, value in out.items()}


def _json(text: str | None, flag: str) -> Any:
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as cause:
        raise errors.UsageError(f"{flag}: {cause}") from cause


def _check_existing(
    client: redis_py.Redis, run: str, folder: Path, given: dict[str, Any], *, named_store: bool
) -> None:
    """Does what is asked fit the run, if there is one already?"""
    try:
        now = config.load(client, run)
    except errors.RunNotFoundError:
        return
    if named_store and now.store != str(folder):
        raise errors.RunMismatchError(
            f"--store {folder}: the prompts of run {run!r} are in {now.store}; leave --store away "
            "or use another --run"
        )
    known, asked = now["destination"], given.get("destination")
    if known is not None and asked is not None and known != asked:
        raise errors.RunMismatchError(
            f"--to {asked}: run {run!r} writes to {known}; leave --to away, or change it for all "
            f"new batches with `regen-config --run {run} set destination={asked}`"
        )


def _check_destination(found: intake.Intake, given: dict[str, Any], epoch: str | None) -> None:
    """A destination of another life or input is refused before anything is queued."""
    where = given.get("destination")
    if where is None:
        return
    objects = open_objects(where, endpoint_url=given.get("endpoint_url"))
    there = manifest.read(objects, found.info.run)
    if there is not None:
        manifest.check_same_life(
            there, epoch=epoch or "none yet", fingerprint=found.info.fingerprint, where=objects.url
        )


def _enqueue(
    client: redis_py.Redis,
    names: keys.Keys,
    found: intake.Intake,
    folder: Path,
    given: dict[str, Any],
) -> None:
    run = names.run
    plan = _plan(found)
    try:
        now: config.Config | None = config.load(client, run)
    except errors.RunNotFoundError:
        now = None
    _check_destination(found, given, None if now is None else now.epoch)
    pinned = {
        "input_fingerprint": found.info.fingerprint,
        "store": str(folder) if now is None else now.store,
        "turns": found.info.turns,
    }
    values = {**pinned, "limit": found.info.limit, **given}
    if now is None:
        queue = enqueue.create(client, run, plan, values)
    else:
        queue = enqueue.reopen(client, run, now, plan, values)
    healed = enqueue.heal(client, queue)
    if healed:
        log.warning("prompts_put_back", count=healed)
    with Progress() as progress:
        filled = enqueue.fill(client, queue, progress=progress.queued)
    end = (
        "every prompt is queued or done"
        if filled.at_end
        else "the queues are full; they are kept so"
    )
    log.info("produced", run=run, queued_now=filled.made, end=end)


def _plan(found: intake.Intake) -> enqueue.Plan:
    counts = found.info.counts
    return enqueue.Plan(
        input=counts.input,
        rejected=counts.rejected_total,
        by_category={"tools": counts.tools, "chat": counts.chat},
        bitmaps={
            "tools": found.tools,
            "multi_turn": found.multi_turn,
            "rejected": found.rejected,
        },
    )


def _tell(found: intake.Intake) -> None:
    """What the input holds, one line each, where nobody can miss it."""
    counts = found.info.counts
    log.info(
        "input",
        rows=counts.input,
        accepted=counts.input - counts.rejected_total,
        tools=counts.tools,
        multi_turn=counts.multi_turn,
        rejected=counts.rejected_total,
        store=found.how,
    )
    for klass, rejections in found.rejections.items():
        log.warning(
            "rejected",
            klass=klass,
            rows=rejections.count,
            first=", ".join(place.source for place in rejections.first),
        )
    if found.info.cut:
        log.warning("input_cut", where=found.info.cut)


def main() -> None:
    cli.run_command(produce, name="regen-produce", examples=EXAMPLES)


if __name__ == "__main__":
    main()
