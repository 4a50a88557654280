"""From a finished intake to a run in Redis with filled queues."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import redis

from regen_common import errors, log, redisio
from regen_common.queue import executor, topup, transitions
from regen_common.run import books, config, keys

STAGE_CHUNK_BYTES: Final = 1 << 20
STAGE_TTL_S: Final = 3_600
FILL_CALLS: Final = 20
BITMAPS: Final = ("tools", "multi_turn", "rejected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What intake found: ``bitmaps`` by index, most significant bit first; counts in prompts."""

    input: int
    rejected: int
    by_category: dict[str, int]
    bitmaps: Mapping[str, bytes]


def create(client: redis.Redis, run: str, plan: Plan, values: Mapping[str, Any]) -> executor.Queue:
    """Bring the run into being, all in one step, or find that it is there.

    Raises :class:`regen_common.errors.RunMismatchError` when another producer just made it of
    another input.
    """
    token = _stage(client, run, plan)
    epoch = secrets.token_hex(4)
    fields = {"version": "1", **_counts(plan), **config.to_fields(values)}
    word = executor.Queue(client, run=run, epoch=None).execute(
        transitions.create(token=token, names=BITMAPS, epoch=epoch, config=fields)
    )
    found = config.load(client, run)
    if word != "ok" and found["input_fingerprint"] != values["input_fingerprint"]:
        raise errors.RunMismatchError(
            f"run {run!r} was just made of another input "
            f"({found['input_fingerprint'][:16]}, here {values['input_fingerprint'][:16]}); "
            "use another --run"
        )
    return executor.Queue(client, run=run, epoch=found.epoch)


def reopen(
    client: redis.Redis, run: str, now: config.Config, plan: Plan, values: Mapping[str, Any]
) -> executor.Queue:
    """An existing run: check that it is of this input, apply what flags changed, let it grow.

    Raises :class:`regen_common.errors.RunMismatchError` when it is of another input.
    """
    queue = executor.Queue(client, run=run, epoch=now.epoch)
    known, here = now["input_fingerprint"], values["input_fingerprint"]
    if known != here:
        raise errors.RunMismatchError(
            f"run {run!r} is of another input ({known[:16]}, here {here[:16]}); use another --run"
        )
    _grow(client, queue, plan)
    after = config.change(client, queue, values, who="regen-produce")
    for name in values:
        if after[name] != now[name]:
            log.info("configuration", key=name, was=now[name], now=after[name])
    return queue


def _grow(client: redis.Redis, queue: executor.Queue, plan: Plan) -> None:
    """More input rows than before: ``--limit`` was raised."""
    before = config.load(client, queue.run)
    if plan.input <= before.input:
        return
    token = _stage(client, queue.run, plan)
    word = queue.execute(
        transitions.create(
            token=token,
            names=BITMAPS,
            epoch=before.epoch,
            config=_counts(plan),
            expected_input=before.input,
        )
    )
    log.info("input_grown", rows=plan.input, before=before.input, state=word)


def _counts(plan: Plan) -> dict[str, str]:
    out = {"input": str(plan.input), "rejected": str(plan.rejected)}
    return out | {f"plan:{c}": str(plan.by_category[c]) for c in keys.CATEGORIES}


def _stage(client: redis.Redis, run: str, plan: Plan) -> str:
    """Bitmaps under names that expire, in pieces: no call moves more than a MiB."""
    names, token = keys.Keys(run=run), secrets.token_hex(8)
    with redisio.mapped_errors():
        for name in BITMAPS:
            key, bits = names.staged_bits(token, name), plan.bitmaps[name]
            for at in range(0, len(bits), STAGE_CHUNK_BYTES):
                client.setrange(key, at, bytes(bits[at : at + STAGE_CHUNK_BYTES]))
            client.expire(key, STAGE_TTL_S)
    return token


def fill(
    client: redis.Redis, queue: executor.Queue, *, progress: Callable[[int], None]
) -> topup.Filled:
    """Make jobs until the window is full or the input is at its end.

    ``progress`` is told how many jobs were made so far by this call.
    """
    now = config.load(client, queue.run)
    top = topup.TopUp(client, queue, size=now.input, max_queued=now["max_queued"])
    made = 0
    while True:
        step = top.fill(calls_max=FILL_CALLS)
        made += step.made
        progress(made)
        if step.at_end or step.full:
            return topup.Filled(made=made, at_end=step.at_end, full=step.full)


def heal(client: redis.Redis, queue: executor.Queue) -> int:
    """Put back jobs that are in no place. Returns how many."""
    made = 0
    for deep in (False, True):
        counted = books.from_counted(queue.execute(transitions.books()))
        if counted.unaccounted <= 0:
            break
        size = config.load(client, queue.run).input
        made += sum(topup.Sweep(client, queue, size=size).run(deep=deep))
    return made
