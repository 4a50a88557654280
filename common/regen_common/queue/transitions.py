"""Each transition as a value: script, named arguments, bodies, and how its reply is read.

Building a call does no I/O; :mod:`regen_common.queue.executor` runs it, blocking or not.
Guards and effects stand at the top of each script in ``queue/lua``.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import orjson

from regen_common.queue import shapes
from regen_common.records import labels
from regen_common.run import keys

T = TypeVar("T")

ENQUEUE_MAX: Final = 500  # 2,000 indices would hold Redis for 39 ms
FINISH_MAX: Final = 100
CUT_MAX: Final = 2_000
RETRY_MAX: Final = 500
REQUEUE_MAX: Final = 500
RATE_SAMPLE_S: Final = 5.0
RATE_SAMPLES_MAX: Final = 720  # one hour


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Generic[T]):
    """One run of a script."""

    script: str
    args: Mapping[str, Any]
    read: Callable[[list[Any]], T]
    bodies: Sequence[bytes] = ()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _word(reply: list[Any]) -> str:
    return _text(reply[0])


def _number(reply: list[Any]) -> int:
    return int(reply[1])


def enqueue(
    *,
    category: str,
    indices: Sequence[int],
    expected: int | None = None,
    new: int | None = None,
    deep: bool = False,
) -> Call[shapes.Enqueued]:
    """Make jobs. With ``new`` the cursor moves from ``expected``; without, it stays (a sweep)."""
    args = {
        "category": category,
        "categories": keys.CATEGORIES,
        "indices": indices,
        "expected": expected,
        "new": new,
        "deep": deep,
    }

    def read(reply: list[Any]) -> shapes.Enqueued:
        state, cursor, *made = reply
        return shapes.Enqueued(_text(state), int(cursor), int(made[0]) if made else 0)

    return Call(script="enqueue", args=args, read=read)


def claim(
    *, queues: Sequence[str], n: int, token: str, worker: str, lease_s: float
) -> Call[shapes.Claim]:
    """Lease up to ``n`` jobs. ``token`` is unique per call and has no ``:``."""
    args = {"queues": queues, "n": n, "token": token, "worker": worker, "lease_s": lease_s}

    def read(reply: list[Any]) -> shapes.Claim:
        state = _word(reply)
        if state != "ok":
            return shapes.Claim(state, 0, [])
        jobs = [
            shapes.Claimed(
                shapes.Lease(_text(queue), int(index), _text(eid)), round_, attempts, strikes
            )
            for index, eid, queue, round_, attempts, strikes in reply[2:]
        ]
        return shapes.Claim(state, int(reply[1]), jobs)

    return Call(script="claim", args=args, read=read)


def heartbeat(*, leases: Iterable[shapes.Lease], lease_s: float) -> Call[list[tuple[int, str]]]:
    """Extend leases. Returns (index, eid) of those that are no longer ours."""
    args = {"leases": [lease.to_args() for lease in leases], "lease_s": lease_s}
    return Call(
        script="heartbeat",
        args=args,
        read=lambda reply: [(int(index), _text(eid)) for index, eid in reply[1:]],
    )


def finish(*, worker: str, records: Sequence[shapes.Finished]) -> Call[list[str]]:
    """Accept answers. One word per record: ``accepted``, ``duplicate`` or ``round``."""
    args = {
        "worker": worker,
        "categories": keys.CATEGORIES,
        "sample_s": RATE_SAMPLE_S,
        "samples_max": RATE_SAMPLES_MAX,
        "labels": labels.LABELS,
        "records": [
            {
                "index": record.lease.index,
                "eid": record.lease.eid,
                "round": record.round,
                "category": keys.category_of(record.lease.queue),
                "mask": record.mask,
                "tokens": record.output_tokens,
                "latency_s": round(record.latency_s, 3),
            }
            for record in records
        ],
    }
    return Call(
        script="finish",
        args=args,
        bodies=[record.body for record in records],
        read=lambda reply: [_text(word) for word in reply[1:]],
    )


def fail(
    *,
    lease: shapes.Lease,
    round: int,  # noqa: A002 - the field's name
    failure: Mapping[str, Any],
    result: Mapping[str, Any],
    worker: str,
    working_s: float,
    status: str = "failed",
) -> Call[str]:
    """End a job for the prompt's own fault. Returns ``ok``, ``lost``, ``round``, ``duplicate``."""
    args = {
        "lease": lease.to_args(),
        "round": round,
        "status": status,
        "failure": orjson.dumps(failure).decode(),
        "result": [str(part) for pair in result.items() for part in pair],
        "worker": worker,
        "working_s": round_s(working_s),
    }
    return Call(script="fail", args=args, read=_word)


def round_s(seconds: float) -> float:
    return float(f"{seconds:.3f}")


def release(*, leases: Iterable[shapes.Lease], charge: str = "none") -> Call[int]:
    """Give leases back to the front. ``charge``: ``none``, ``attempt`` or ``strike``."""
    args = {"leases": [lease.to_args() for lease in leases], "charge": charge}
    return Call(script="release", args=args, read=_number)


def reap(*, queue: str, offset: int = 0) -> Call[tuple[int, int]]:
    """Put expired leases back. Returns (jobs put back, next offset of the sweep)."""
    return Call(
        script="reap",
        args={"queue": queue, "offset": offset},
        read=lambda reply: (int(reply[1]), int(reply[2])),
    )


def digest(entries: Iterable[shapes.Entry]) -> str:
    """What a cut is checked against: sha1 over ids, indices and rounds."""
    line = " ".join(f"{e.stream_id}:{e.index}:{e.round}" for e in entries)
    return hashlib.sha1(line.encode(), usedforsecurity=False).hexdigest()


def cut(
    *, expected: str, entries: Sequence[shapes.Entry], name: str, codec: str, to: str
) -> Call[str]:
    """Decide a batch. Returns ``ok``, ``stale`` or ``changed``."""
    args = {
        "expected": expected,
        "last": entries[-1].stream_id,
        "count": len(entries),
        "digest": digest(entries),
        "name": name,
        "codec": codec,
        "to": to,
        "bytes": sum(len(entry.body) for entry in entries),
    }
    return Call(script="cut", args=args, read=_word)


def commit(*, name: str, size: int) -> Call[shapes.Committed]:
    """Close an intent whose object, ``size`` bytes long, is at the destination."""
    return Call(
        script="commit",
        args={"name": name, "size": size, "labels": labels.LABELS},
        read=lambda reply: shapes.Committed(_word(reply), tuple(int(n) for n in reply[1:])),
    )


def requeue(*, items: Iterable[tuple[int, int, str]]) -> Call[int]:
    """Ask again: (index, present round, category) each. Returns the number of jobs made."""
    args = {
        "items": [{"index": i, "round": r, "category": c} for i, r, c in items],
    }
    return Call(script="requeue", args=args, read=_number)


def retry(*, queue: str, ids: Sequence[str]) -> Call[int]:
    """Send failed jobs of ``queue`` round again. Returns how many went back."""
    return Call(script="retry", args={"queue": queue, "ids": ids}, read=_number)


def halt(*, why: str, detail: str) -> Call[str]:
    return Call(script="halt", args={"why": why, "detail": detail}, read=_word)


def resume() -> Call[bool]:
    """Returns whether the run was halted."""
    return Call(script="resume", args={}, read=lambda reply: reply[1] == 1)


def create(
    *,
    token: str,
    names: Sequence[str],
    epoch: str,
    config: Mapping[str, str],
    expected_input: int | None = None,
) -> Call[str]:
    """Create a run, or grow its input. Returns ``ok``, ``exists`` or ``grown``."""
    args = {
        "any_epoch": True,
        "token": token,
        "names": names,
        "epoch": epoch,
        "config": config,
        "expected_input": expected_input,
    }
    return Call(script="create", args=args, read=_word)


def configure(*, expected: int, values: Mapping[str, str], who: str) -> Call[tuple[str, int]]:
    """Change configuration (JSON text by key) if its version is still ``expected``."""
    args = {"expected": expected, "values": values, "who": who}
    return Call(script="configure", args=args, read=lambda reply: (_word(reply), int(reply[1])))


def books() -> Call[shapes.Counted]:
    """Count everything in its places, in one moment."""

    def read(reply: list[Any]) -> shapes.Counted:
        halt_text = reply[7]
        return shapes.Counted(
            input=int(reply[1]),
            rejected=int(reply[2]),
            stream=int(reply[3]),
            redo=int(reply[4]),
            open_intents=int(reply[5]),
            suspended=bool(reply[6]),
            halt=orjson.loads(halt_text) if halt_text else None,
            categories=[
                shapes.CategoryBooks(_text(c[0]), *(int(n) for n in c[1:])) for c in reply[8:]
            ],
        )

    return Call(script="books", args={"categories": keys.CATEGORIES}, read=read)
