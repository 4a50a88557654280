"""A small run with all its actors, on a real Valkey, with RQ's own code beside ours.

The actors can be stopped anywhere: replies get lost and calls are repeated, consumers and sinks die
or sleep, RQ's commands are interrupted between their read and their write, Redis loses its last
writes or everything. :mod:`places` says after each step whether anything is lost or double.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import redis
from redis.client import Pipeline
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import Job
from rq.registry import StartedJobRegistry

from regen_common import errors
from regen_common.queue import executor, scripts, shapes, transitions
from regen_common.run import keys
from regen_consumer.sink import intents

SIZE = 60
RUN = "model"
REJECTED = frozenset({5, 50})
LEASE_S = 60
PUT_MAX_S = 30
TOOLS_FROM = 48
K = keys.Keys(run=RUN)

MOVABLE_CLOCK = "local function now() return tonumber(redis.call('GET', 'test:now')) end"
DUMP_ALL = """local out = {} for _, key in ipairs(redis.call('KEYS', '*')) do
  out[#out + 1] = key out[#out + 1] = redis.call('DUMP', key) end return out"""


def category(index: int) -> str:
    return "tools" if index >= TOOLS_FROM else "chat"


def members(of: str) -> list[int]:
    return [index for index in range(SIZE) if category(index) == of]


class DiedInBetweenError(Exception):
    """RQ's command was killed between its read and its write."""


class _Pipeline(Pipeline):
    before_execute: Callable[[], None] | None = None

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        hook, _Pipeline.before_execute = _Pipeline.before_execute, None
        if hook is not None:
            hook()
        return super().execute(raise_on_error)


class InterruptibleRedis(redis.Redis):
    """What RQ's commands run on: something else may happen just before a pipeline executes."""

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


@dataclass(frozen=True)
class Mutation:
    """A guard taken out: ``old`` in a script becomes ``new``; or a rule of the sink is ignored."""

    script: str = ""
    old: str = ""
    new: str = ""
    ignored: frozenset[str] = frozenset()


def sources(mutations: tuple[Mutation, ...]) -> dict[str, str]:
    """All scripts with the movable clock, and the mutations worked in, each where it must fit."""
    out = {name: scripts.source(name, clock=MOVABLE_CLOCK) for name in scripts.TRANSITIONS}
    for mutation in mutations:
        if not mutation.script:
            continue
        text = out[mutation.script]
        assert text.count(mutation.old) == 1, f"{mutation.old!r} in {mutation.script}"
        out[mutation.script] = text.replace(mutation.old, mutation.new)
    return out


@dataclass
class Held:
    """What a sink has in memory: a draft of a cut, or an intent with its content."""

    queue: executor.Queue
    draft: list[shapes.Entry] | None = None
    expected: str = "0-0"
    intent: intents.Intent | None = None
    body: bytes = b""
    deadline: float = 0.0


@dataclass
class Hand:
    """What a consumer has in memory: a claimed job, and the epoch it was claimed in."""

    queue: executor.Queue
    job: shapes.Claimed

    @property
    def index(self) -> int:
        return self.job.lease.index


@dataclass
class World:
    """The run. Every public method is something that some actor does."""

    client: redis.Redis
    mutations: tuple[Mutation, ...] = ()
    now_s: float = 1_800_000_000.0
    manifest_epoch: str = ""
    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    hands: list[Hand] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    in_flight: list[Held] = field(default_factory=list)
    calls: list[tuple[executor.Queue, transitions.Call[Any]]] = field(default_factory=list)
    snapshots: list[tuple[float, list[bytes], set[int]]] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    raced: bool = False  # RQ was interrupted: junk may stand in its lists until a claim or sweep
    serial: int = 0

    def __post_init__(self) -> None:
        self.client.flushall()
        self._sources = sources(self.mutations)
        self._ignored = frozenset().union(*(m.ignored for m in self.mutations))
        self._dump = self.client.register_script(DUMP_ALL)
        self._rq = InterruptibleRedis(connection_pool=self.client.connection_pool)
        self._build("e0")
        self.snapshot()

    # --- plumbing

    def _queue(self, epoch: str) -> executor.Queue:
        return executor.Queue(self.client, run=RUN, epoch=epoch, sources=self._sources)

    def _set_time(self) -> None:
        self.client.set("test:now", repr(self.now_s))

    def _build(self, epoch: str) -> None:
        """Intake, or a repair from the objects: everything staged, then in at once."""
        self.manifest_epoch = epoch
        self._set_time()
        best: dict[int, dict[str, Any]] = {}
        for name in sorted(self.objects):
            for record in self.objects[name]:
                known = best.get(record["i"])
                if known is None or record["r"] > known["r"]:
                    best[record["i"]] = record
        pipe = self.client.pipeline()
        for index in REJECTED:
            pipe.setbit(K.bits("rejected"), index, 1)
        for index, record in best.items():
            for name in ("done", "accepted", "enqueued"):
                pipe.setbit(K.bits(name), index, 1)
            pipe.execute_command("BITFIELD", K.rounds, "SET", "u4", f"#{index}", record["r"])
            pipe.setbit(K.bits("empty"), index, record["l"] & 1)
            pipe.hincrby(K.stats, f"done:{category(index)}", 1)
            pipe.hincrby(K.stats, f"enqueued:{category(index)}", 1)
            pipe.hincrby(K.stats, f"label:empty:{category(index)}", record["l"] & 1)
        pipe.execute()
        config = {"version": "1", "input": str(SIZE), "rejected": str(len(REJECTED))} | {
            f"plan:{c}": str(len(set(members(c)) - REJECTED)) for c in keys.CATEGORIES
        }
        self.queue = self._queue(epoch)
        made = self.queue.execute(
            transitions.create(token="t", names=[], epoch=epoch, config=config)
        )
        assert made == "ok"

    def execute(self, queue: executor.Queue, call: transitions.Call[Any]) -> Any:
        """Run a call; an old epoch's is refused, which is right. Remembered for ``repeat_call``."""
        self.calls = [*self.calls[-5:], (queue, call)]
        with contextlib.suppress(errors.WrongEpochError):
            return queue.execute(call)
        return None

    def cursor(self, of: str) -> int:
        return int(self.client.get(K.cursor(of)) or 0)

    def live_leases(self) -> set[int]:
        """Indices whose lease is live by what Redis holds."""
        out = set()
        for queue in K.queues:
            for member, score in self.client.zrange(
                keys.rq_registry("wip", queue), 0, -1, withscores=True
            ):
                job_id, _, eid = member.decode().partition(":")
                holder = self.client.hget(f"rq:job:{job_id}", "eid")
                if score - 3600 > self.now_s and (holder or b"").decode() == eid:
                    out.add(keys.index_of(job_id))
        return out

    # --- time and loss

    def tick(self, seconds: float) -> None:
        self.now_s += seconds
        self._set_time()
        self.in_flight = [held for held in self.in_flight if held.deadline >= self.now_s]

    def snapshot(self) -> None:
        fresh = [s for s in self.snapshots if self.now_s - s[0] < intents.SETTLE_S]
        self.snapshots = [*fresh[-7:], (self.now_s, self._dump(), set(self.deleted))]

    def lose_last_writes(self, which: int) -> None:
        """Redis comes back as it was less than SETTLE_S ago."""
        fresh = [s for s in self.snapshots if self.now_s - s[0] < intents.SETTLE_S]
        if not fresh:
            return
        at, dump, deleted = fresh[which % len(fresh)]
        self.client.flushall()
        pipe = self.client.pipeline()
        for key, value in zip(dump[::2], dump[1::2], strict=True):
            pipe.restore(key, 0, value)
        pipe.execute()
        self._set_time()
        self.snapshots = [s for s in fresh if s[0] <= at]
        self.deleted |= deleted

    def lose_everything_and_repair(self) -> None:
        """FLUSHALL with everybody alive; then repair, as design section 5 orders its steps."""
        self.client.flushall()
        self.serial += 1
        epoch = f"e{self.serial}x"
        self.manifest_epoch = epoch
        self.now_s += PUT_MAX_S + 1
        for held in list(self.in_flight):  # those under way land in the meantime
            self.land(held, crash=True)
        self.in_flight = []
        self._build(epoch)
        self.snapshots, self.deleted, self.raced = [], set(), False

    def repeat_call(self, which: int) -> None:
        """A reply was lost, and redis-py repeats the call, perhaps much later."""
        if not self.calls:
            return
        queue, call = self.calls[which % len(self.calls)]
        before = self.live_leases()
        with contextlib.suppress(errors.WrongEpochError):
            out = queue.execute(call)
            if isinstance(out, shapes.Claim):
                for job in out.jobs:
                    assert job.lease.index not in before, "leased twice by a repeated claim"

    # --- producer

    def enqueue(self, of: str, size: int, *, stale: bool = False) -> None:
        cursor = max(0, self.cursor(of) - (3 if stale else 0))
        ids = [index for index in members(of) if index >= cursor][:size]
        new = ids[-1] + 1 if ids else SIZE
        self.execute(
            self.queue,
            transitions.enqueue(category=of, indices=ids, expected=cursor, new=new),
        )

    def canary(self, ids: list[int], *, deep: bool = False) -> None:
        for of in keys.CATEGORIES:
            mine = [index for index in ids if category(index) == of]
            if mine:
                self.execute(self.queue, transitions.enqueue(category=of, indices=mine, deep=deep))

    def rewind(self, of: str) -> None:
        self.execute(
            self.queue,
            transitions.enqueue(category=of, indices=[], expected=self.cursor(of), new=0),
        )

    # --- consumers

    def claim(self, worker: int, n: int, first: str = "chat") -> list[Hand]:
        before = self.live_leases()
        self.serial += 1
        order = [first, *(c for c in keys.CATEGORIES if c != first)]
        claim = self.execute(
            self.queue,
            transitions.claim(
                queues=[K.queue(c) for c in order],
                n=n,
                token=f"t{self.serial}x",
                worker=f"w{worker}",
                lease_s=LEASE_S,
            ),
        )
        got = [Hand(self.queue, job) for job in claim.jobs]
        for hand in got:
            assert hand.index not in before, f"{hand.index} leased twice"
            before.add(hand.index)
        self.hands = [*self.hands, *got][-80:]
        return got

    def heartbeat(self, hands: list[Hand]) -> None:
        if hands:
            leases = [hand.job.lease for hand in hands]
            self.execute(hands[0].queue, transitions.heartbeat(leases=leases, lease_s=LEASE_S))

    def finish(self, hands: list[Hand], *, bad: bool = False, twice: bool = False) -> None:
        """``bad``: answers are ``empty``. All hands' records go under the first one's epoch."""
        records = []
        for hand in hands:
            self.serial += 1
            body = {"i": hand.index, "r": hand.job.round, "l": int(bad), "n": self.serial}
            records.append(
                shapes.Finished(
                    lease=hand.job.lease,
                    round=hand.job.round,
                    mask=int(bad),
                    output_tokens=7,
                    latency_s=1.0,
                    body=json.dumps(body).encode(),
                )
            )
        for _ in range(1 + twice):
            if records:
                call = transitions.finish(worker="w0", records=records)
                self.execute(hands[0].queue, call)

    def fail(self, hand: Hand) -> None:
        self.execute(
            hand.queue,
            transitions.fail(
                lease=hand.job.lease,
                round=hand.job.round,
                failure={"class": "bad_request"},
                result={"type": 2, "created_at": "2026-12-01T01:03:38.000000Z"},
                worker="w0",
                working_s=1.0,
            ),
        )

    def release(self, hands: list[Hand], *, charge: str = "none") -> None:
        if hands:
            leases = [hand.job.lease for hand in hands]
            self.execute(hands[0].queue, transitions.release(leases=leases, charge=charge))

    def reap(self, of: str) -> None:
        self.execute(self.queue, transitions.reap(queue=K.queue(of)))

    # --- RQ, by hand or on its own, perhaps interrupted

    @contextlib.contextmanager
    def _interrupted(self, by: Callable[[], None] | None) -> Iterator[None]:
        def hook() -> None:
            self.raced = True
            if by is not None:
                by()

        _Pipeline.before_execute = None if by is None else hook
        try:
            with contextlib.suppress(
                DiedInBetweenError, NoSuchJobError, InvalidJobOperation, ValueError, KeyError
            ):
                yield
        finally:
            _Pipeline.before_execute = None

    def rq_cleanup(
        self, of: str, *, clock_ahead_s: float = 0, by: Callable[[], None] | None = None
    ) -> None:
        """What any ``rq info`` does first."""
        with self._interrupted(by):
            registry = StartedJobRegistry(K.queue(of), connection=self._rq, serializer="json")
            registry.cleanup(timestamp=self.now_s + clock_ahead_s)

    def _fetch(self, index: int) -> Job:
        return Job.fetch(K.job_id(index), connection=self._rq, serializer="json")

    def rq_requeue(self, index: int, *, by: Callable[[], None] | None = None) -> None:
        with self._interrupted(by):
            self._fetch(index).requeue()

    def rq_cancel(self, index: int, *, by: Callable[[], None] | None = None) -> None:
        with self._interrupted(by):
            self._fetch(index).cancel()

    def rq_delete(self, index: int, *, by: Callable[[], None] | None = None) -> None:
        with self._interrupted(by):
            self._fetch(index).delete()
            self.deleted.add(index)

    # --- sinks

    def read_stream(self, n: int) -> Held | None:
        """A sink reads what it would cut; it may be slow to do so."""
        cut = (self.client.get(K.cut) or b"0-0").decode()
        draft = self._entries(f"({cut}", "+", n)
        return Held(self.queue, draft=draft, expected=cut) if draft else None

    def _entries(self, first: str, last: str, n: int | None = None) -> list[shapes.Entry]:
        raw = self.client.xrange(K.results, first, last, count=n)
        return [
            shapes.Entry(stream_id.decode(), int(f[b"i"]), int(f[b"r"]), int(f[b"l"]), f[b"b"])
            for stream_id, f in raw
        ]

    def cut(self, held: Held) -> None:
        assert held.draft
        sha = hashlib.sha256(intents.content(held.draft)).hexdigest()
        name = intents.object_name(held.draft, sha256=sha, codec="zstd")
        self.execute(
            held.queue,
            transitions.cut(
                expected=held.expected, entries=held.draft, name=name, codec="zstd", to="dest"
            ),
        )

    def open_intents(self) -> list[intents.Intent]:
        found = sorted(self.client.hgetall(K.intents).items())
        return [intents.parse(name.decode(), text) for name, text in found]

    def read_intent(self, intent: intents.Intent) -> Held:
        """A sink reads an open intent and its content, and carries on whenever."""
        entries = self._entries(f"({intent.first}", intent.last)
        body = intents.content(entries)
        assert len(entries) == intent.count, "an open intent that can never be carried out"
        assert hashlib.sha256(body).hexdigest().startswith(intent.sha16), "intent's content changed"
        return Held(self._queue(intent.epoch), intent=intent, body=body)

    def start_put(self, held: Held) -> Held | None:
        """The sink's own rule decides; a rule in ``ignored`` counts as satisfied."""
        assert held.intent
        why = intents.hindrance(
            held.intent,
            still_open="gone" in self._ignored
            or bool(self.client.hexists(K.intents, held.intent.name)),
            redis_time_s=self.now_s + (1e9 if "young" in self._ignored else 0),
            aof_ok=True,
            manifest_epoch=held.intent.epoch if "epoch" in self._ignored else self.manifest_epoch,
        )
        if why is not None:
            return None
        flying = replace(held, deadline=self.now_s + PUT_MAX_S)
        self.in_flight.append(flying)
        return flying

    def land(self, held: Held, *, crash: bool = False) -> None:
        """The PUT arrives (create-only), and unless the sink dies here, it commits."""
        assert held.intent
        name, records = held.intent.name, [json.loads(line) for line in held.body.splitlines()]
        if name in self.objects:
            assert self.objects[name] == records, "one name, two contents"
        else:
            seen = {(r["i"], r["r"]): n for n, rs in self.objects.items() for r in rs}
            for record in records:
                other = seen.get((record["i"], record["r"]))
                assert other is None, f"{record} in {name} and in {other}"
            self.objects[name] = records
        if not crash:
            self.commit(held.queue, name)

    def commit(self, queue: executor.Queue, name: str) -> None:
        out = self.execute(queue, transitions.commit(name=name, size=1))
        assert out is None or out.state != "corrupt", "an open intent lost records of its range"

    def sink_batch(self, n: int, *, stop: int = 9) -> None:
        """One batch by a sink that dies at step ``stop``: 0 read, 1 cut, 2 put, 3 landed."""
        before = {intent.name for intent in self.open_intents()}
        held = self.read_stream(n)
        if held is not None and stop > 0:
            self.cut(held)
        now_open = self.open_intents()
        chosen = [i for i in now_open if i.name not in before] or now_open
        if stop < 2 or not chosen:
            return
        reading = self.read_intent(chosen[0])
        self.tick(intents.SETTLE_S + 1)
        flying = self.start_put(reading)
        if stop < 3 or flying is None:
            return
        self.land(flying, crash=stop == 3)
        self.in_flight.remove(flying)

    # --- people

    def requeue(self, ids: list[int]) -> None:
        items = [(index, self.round(index), category(index)) for index in ids]
        if items:
            self.execute(self.queue, transitions.requeue(items=items))

    def retry_failed(self, ids: list[int]) -> None:
        """``regen-requeue --failed``, with whatever ids it saw a moment ago."""
        for of in keys.CATEGORIES:
            mine = [K.job_id(index) for index in ids if category(index) == of]
            if mine:
                self.execute(self.queue, transitions.retry(queue=K.queue(of), ids=mine))

    def round(self, index: int) -> int:
        out = self.client.execute_command("BITFIELD", K.rounds, "GET", "u4", f"#{index}")
        return int(out[0])

    def done(self) -> list[int]:
        return [index for index in range(SIZE) if self.client.getbit(K.bits("done"), index)]

    def halt(self) -> None:
        self.execute(self.queue, transitions.halt(why="hand", detail=""))

    def resume(self) -> None:
        self.execute(self.queue, transitions.resume())

    def suspend(self, on: bool) -> None:
        if on:
            self.client.set(keys.RQ_SUSPENDED, 1)
        else:
            self.client.delete(keys.RQ_SUSPENDED)
