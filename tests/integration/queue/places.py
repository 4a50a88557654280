"""Where every prompt of a :class:`world.World` is, and whether that can be right."""

import json
from dataclasses import dataclass

import redis
import world

from regen_common.queue import shapes, transitions
from regen_common.run import books, keys


@dataclass(frozen=True, kw_only=True)
class Places:
    """Everything Redis holds about the run, read in one transaction."""

    queue: list[int]
    wip: list[tuple[int, str]]
    failed: list[int]
    canceled: list[int]
    accepted: set[int]
    done: set[int]
    enqueued: set[int]
    empty: set[int]
    rounds: list[int]
    stream: list[tuple[int, int]]
    redo: set[int]
    jobs: list[tuple[bytes | None, bytes | None]]  # status and eid by index
    counted: shapes.Counted | None = None

    def status(self, index: int) -> str:
        return (self.jobs[index][0] or b"").decode()

    @property
    def queued(self) -> list[int]:
        return [index for index in self.queue if self.status(index) == "queued"]

    @property
    def leased(self) -> list[int]:
        return [
            index
            for index, eid in self.wip
            if (self.jobs[index][1] or b"").decode() == eid and self.status(index) == "started"
        ]


def _indices(raw: list[bytes]) -> list[int]:
    return [keys.index_of(job_id.decode()) for job_id in raw]


def _bits(raw: bytes | None) -> set[int]:
    raw = raw or b""
    return {i for i in range(len(raw) * 8) if raw[i // 8] >> (7 - i % 8) & 1}


def read(w: "world.World") -> Places:
    """All places of one moment."""
    pipe: redis.client.Pipeline = w.client.pipeline()
    for queue in world.K.queues:
        pipe.lrange(keys.rq_queue(queue), 0, -1)
        for registry in ("wip", "failed", "canceled"):
            pipe.zrange(keys.rq_registry(registry, queue), 0, -1)
    for name in ("accepted", "done", "enqueued", "empty"):
        pipe.get(world.K.bits(name))
    gets = [part for i in range(world.SIZE) for part in ("GET", "u4", f"#{i}")]
    pipe.execute_command("BITFIELD", world.K.rounds, *gets)
    pipe.xrange(world.K.results)
    pipe.smembers(world.K.redo)
    for index in range(world.SIZE):
        pipe.hmget(world.K.job(index), "status", "eid")
    out = pipe.execute()
    wip = [member.decode().rpartition(":") for member in out[1] + out[5]]
    return Places(
        queue=_indices(out[0] + out[4]),
        wip=[(keys.index_of(job_id), eid) for job_id, _, eid in wip],
        failed=_indices(out[2] + out[6]),
        canceled=_indices(out[3] + out[7]),
        accepted=_bits(out[8]),
        done=_bits(out[9]),
        enqueued=_bits(out[10]),
        empty=_bits(out[11]),
        rounds=out[12],
        stream=[(int(entry[b"i"]), int(entry[b"r"])) for _, entry in out[13]],
        redo=set(_indices(list(out[14]))),
        jobs=[tuple(job) for job in out[15:]],
        counted=w.queue.execute(transitions.books()),
    )


def unaccounted(p: Places) -> int:
    """The books' difference, as :mod:`regen_common.run.books` forms it."""
    assert p.counted
    return books.from_counted(p.counted).unaccounted


def check(w: "world.World") -> Places:
    """Fail unless every prompt is in one place, no answer is lost or double, and books balance."""
    p = read(w)
    landed = {(r["i"], r["r"]) for records in w.objects.values() for r in records}
    assert len(set(p.stream)) == len(p.stream), "(index, round) twice in the stream"
    stream = set(p.stream)
    for index in p.accepted:
        assert (index, p.rounds[index]) in stream | landed, f"{index}: accepted answer is nowhere"
    for index in p.done:
        assert any((index, r) in landed for r in range(16)), f"{index}: done without an object"
    assert len(p.leased) == len(set(p.leased)), "two live leases"
    if not w.raced:
        _check_single_places(w, p)
    return p


def _check_single_places(w: "world.World", p: Places) -> None:
    stream = set(p.stream)
    nowhere, twice = set(), []
    for index in set(range(world.SIZE)) - world.REJECTED:
        found = [
            name
            for name, there in (
                ("queued", index in p.queued),
                ("leased", index in p.leased),
                ("failed", index in p.failed),
                ("canceled", index in p.canceled),
                ("stream", (index, p.rounds[index]) in stream),
                ("not enqueued", index not in p.enqueued),
                (
                    "settled",
                    index in p.done & p.accepted and (index, p.rounds[index]) not in stream,
                ),
            )
            if there
        ]
        if not found:
            nowhere.add(index)
        if len(found) > 1:
            twice.append((index, found))
    assert not twice, f"in two places: {twice}"
    assert nowhere <= w.deleted, f"lost: {nowhere - w.deleted}"
    assert sorted(p.queued) == sorted(p.queue), "junk in a queue list"
    assert sorted(p.leased) == sorted(index for index, _ in p.wip), "junk in wip"
    assert unaccounted(p) == len(nowhere), f"unaccounted {unaccounted(p)}, nowhere {nowhere}"


def drain(w: "world.World") -> None:
    """Let healthy actors work until everything is done; then nothing may be left or be wrong."""
    w.suspend(False)
    w.resume()
    w.in_flight, w.held, w.hands = [], [], []
    for _ in range(12):
        _drain_once(w)
        p = read(w)
        left = (p.queue, p.wip, p.failed, p.canceled, p.stream, p.redo)
        if len(p.done) == world.SIZE - len(world.REJECTED) and not any(left):
            break
    else:
        raise AssertionError(f"does not drain: {p}")
    w.raced, w.deleted = False, set()
    p = check(w)
    _check_end(w, p)


def _drain_once(w: "world.World") -> None:
    p = read(w)
    for index in p.failed:
        w.rq_requeue(index)
    for index in p.canceled:
        w.rq_delete(index)
    for of in keys.CATEGORIES:
        w.enqueue(of, world.SIZE)
        w.canary(world.members(of), deep=True)  # the sweep
    for _ in range(8):
        got = w.claim(0, 12)
        if not got:
            break
        w.finish(got)
    w.tick(3700)
    for of in keys.CATEGORIES:
        w.reap(of)
    draft = w.read_stream(world.SIZE)
    if draft:
        w.cut(draft)
    w.tick(6)
    for intent in w.open_intents():
        flying = w.start_put(w.read_intent(intent))
        assert flying, "a settled intent is not carried out"
        w.land(flying)
        w.in_flight = []


def _check_end(w: "world.World", p: Places) -> None:
    assert not [i for i, job in enumerate(p.jobs) if job[0]], "a job hash is left"
    assert not w.open_intents(), "an intent is left"
    best: dict[int, dict[str, int]] = {}
    for name in sorted(w.objects):
        for record in w.objects[name]:
            if record["i"] not in best or record["r"] > best[record["i"]]["r"]:
                best[record["i"]] = record
    assert set(best) == set(range(world.SIZE)) - world.REJECTED
    stats = {k.decode(): float(v) for k, v in w.client.hgetall(world.K.stats).items()}
    assert stats.get("backlog", 0) == 0
    assert sum(stats.get(f"done:{c}", 0) for c in keys.CATEGORIES) == len(p.done)
    assert p.empty == {i for i, r in best.items() if r["l"] & 1}, "labels of another round stand"
    assert sum(stats.get(f"label:empty:{c}", 0) for c in keys.CATEGORIES) == len(p.empty)
    for index, record in best.items():
        assert p.rounds[index] == record["r"], f"round of {index}"
    indices = [
        i
        for entry in w.client.hvals(world.K.ledger)
        for i in _undelta(json.loads(entry)["indices"])
    ]
    assert set(indices) <= set(best), "the ledger names what no batch holds"


def _undelta(text: str) -> list[int]:
    out, at = [], 0
    for delta in text.split():
        at += int(delta)
        out.append(at)
    return out
