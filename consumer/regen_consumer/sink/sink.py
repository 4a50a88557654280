"""The sink: cuts intents from the results stream and carries out open ones, any number of times.

One step of the loop: cut what is due, take up intents that others left, PUT what is settled (from
threads, several at once), commit what arrived. Each can be interrupted anywhere: an intent never
changes, a PUT never overwrites, a commit counts once.
"""

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from regen_common import errors, log, redisio
from regen_common.clock import Clock
from regen_common.objects import Objects
from regen_common.queue import shapes, transitions
from regen_common.run import books, manifest, opening
from regen_consumer.sink import codecs, cutting, intents, keeper, stream

PUTS_AT_ONCE: Final = 4
ADOPT_AFTER_S: Final = 30.0
"""An intent this old that is not ours is a dead sink's, or a slow one's: both may go on."""

ADOPT_EVERY_S: Final = 5.0
MEMORY_MAX: Final = 256 << 20
"""Bytes of compressed batches waiting to be PUT; beyond this nothing more is cut."""

RETRY_PAUSE_S: Final = 5.0
RETRY_PAUSE_MAX_S: Final = 60.0
REPLICAS_WAIT_MS: Final = 1000

UNREACHABLE: Final = (errors.DestinationError, errors.DestinationRefusedError)
"""Once a sink works it waits for a destination that refuses, too: keys expire and are renewed."""


@dataclass(kw_only=True, slots=True)
class Waiting:
    """An open intent in this sink's hands. ``body`` is compressed."""

    intent: intents.Intent
    sha256: str
    body: bytes
    put: Future[None] | None = None
    failures: int = 0
    not_before_s: float = 0.0


class Sink:
    """One sink of one run. Not for several threads."""

    def __init__(
        self,
        run: opening.OpenRun,
        objects: Objects,
        *,
        limits: cutting.Limits,
        codec: str,
        clock: Clock,
        redis_time_s: Callable[[], float] | None = None,
    ) -> None:
        self._run = run
        self._redis_time_s = redis_time_s or (lambda: redisio.time_s(run.client))
        self._objects = objects
        self._limits = limits
        self._codec = codec
        self._clock = clock
        self._keeper = keeper.ManifestKeeper(run, objects, clock=clock)
        self._uncut = stream.Uncut(run.client, run.keys)
        self._waiting: dict[str, Waiting] = {}
        self._broken: set[str] = set()
        self._pool = ThreadPoolExecutor(PUTS_AT_ONCE, thread_name_prefix="put")
        self._adopt_at_s = 0.0
        self.batches = 0
        self.bytes = 0

    @property
    def healthy(self) -> bool:
        """No intent was found that can't be carried out."""
        return not self._broken

    def open(self) -> None:
        """Compare the destination with Redis, and take up where the last sink stopped.

        Raises :class:`regen_common.errors.RunMismatchError` when they do not belong together.
        """
        self._keeper.open()
        self._uncut.reset()

    def step(self, *, flush: bool, leaving: bool = False) -> bool:
        """One round. Returns whether anything is still on its way.

        ``flush``: cut small batches too, and take up all open intents. ``leaving``: start nothing.
        """
        redis_time_s = self._redis_time_s()
        if not leaving:
            self._cut(redis_time_s, flush=flush)
            self._adopt(redis_time_s, at_once=flush)
            self._start_puts(redis_time_s)
        self._collect()
        self._keeper.keep(batches=self.batches)
        return any(w.put for w in self._waiting.values()) if leaving else bool(self._waiting)

    def over(self) -> bool:
        """Has the run come to its end, with everything at the destination?"""
        counted = self._run.queue.execute(transitions.books())
        return books.from_counted(counted).over

    def nothing_to_come(self) -> bool:
        """Is everything that will be answered answered, so that small batches may be cut?"""
        counted = self._run.queue.execute(transitions.books())
        now = books.from_counted(counted)
        return not (now.not_enqueued or now.queued or now.leased)

    def close(self) -> None:
        """End the threads and leave a current manifest."""
        self._pool.shutdown(wait=True)
        self._collect()
        self._keeper.keep(batches=self.batches, now=True)

    # --- deciding

    def _cut(self, redis_time_s: float, *, flush: bool) -> None:
        while sum(len(w.body) for w in self._waiting.values()) < MEMORY_MAX:
            self._uncut.read_on(records_max=self._limits.records, bytes_max=self._limits.bytes)
            n = cutting.due(
                self._uncut.entries, self._limits, redis_time_s=redis_time_s, flush=flush
            )
            if not n or not self._decide(self._uncut.entries[:n]):
                return

    def _decide(self, entries: list[shapes.Entry]) -> bool:
        content = intents.content(entries)
        sha256 = hashlib.sha256(content).hexdigest()
        name = intents.object_name(entries, sha256=sha256, codec=self._codec)
        word = self._run.queue.execute(
            transitions.cut(
                expected=self._uncut.cut,
                entries=entries,
                name=name,
                codec=self._codec,
                to=self._objects.url,
            )
        )
        if word != "ok":
            log.info("cut_refused", why=word)
            self._uncut.reset()
            return False
        self._uncut.taken(len(entries))
        intent = self._read_intent(name)
        if intent is not None:
            self._hold(intent, sha256=sha256, content=content)
        return True

    def _read_intent(self, name: str) -> intents.Intent | None:
        with redisio.mapped_errors():
            text = self._run.client.hget(self._run.keys.intents, name)
        return None if text is None else intents.parse(name, text)

    def _hold(self, intent: intents.Intent, *, sha256: str, content: bytes) -> None:
        body = codecs.compress(content, intent.codec)
        self._waiting[intent.name] = Waiting(intent=intent, sha256=sha256, body=body)

    # --- taking up

    def _adopt(self, redis_time_s: float, *, at_once: bool) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._adopt_at_s and not at_once:
            return
        self._adopt_at_s = now_s + ADOPT_EVERY_S
        with redisio.mapped_errors():
            found = self._run.client.hgetall(self._run.keys.intents)
        for raw_name, text in sorted(found.items()):
            intent = intents.parse(redisio.text(raw_name), text)
            known = intent.name in self._waiting or intent.name in self._broken
            if not known and (at_once or redis_time_s - intent.at >= ADOPT_AFTER_S):
                self._take_up(intent)

    def _take_up(self, intent: intents.Intent) -> None:
        entries = stream.read_range(
            self._run.client, self._run.keys, after=intent.first, last=intent.last
        )
        content = intents.content(entries)
        sha256 = hashlib.sha256(content).hexdigest()
        if len(entries) == intent.count and sha256.startswith(intent.sha16):
            log.info("intent_taken_up", name=intent.name, records=intent.count)
            self._hold(intent, sha256=sha256, content=content)
        elif self._read_intent(intent.name) is not None:  # not just committed by its own sink
            self._broken.add(intent.name)
            log.error("intent_broken", name=intent.name, records=intent.count, found=len(entries))

    # --- writing

    def _start_puts(self, redis_time_s: float) -> None:
        now_s = self._clock.monotonic_s()
        ready = [
            w
            for w in self._waiting.values()
            if w.put is None
            and w.not_before_s <= now_s
            and redis_time_s - w.intent.at >= intents.SETTLE_S
        ]
        free = PUTS_AT_ONCE - sum(1 for w in self._waiting.values() if w.put)
        if not ready or free <= 0:
            return
        safe = self._safe_on_disk()
        for waiting in ready[:free]:
            self._start_put(waiting, redis_time_s, safe=safe)

    def _start_put(self, waiting: Waiting, redis_time_s: float, *, safe: bool) -> None:
        intent = waiting.intent
        try:
            why = intents.hindrance(
                intent,
                still_open=self._read_intent(intent.name) is not None,
                redis_time_s=redis_time_s,
                aof_ok=safe,
                manifest_epoch=self._keeper.epoch_there(),
            )
        except UNREACHABLE as error:
            self._failed(waiting, error)
            return
        if why == "gone":
            del self._waiting[intent.name]
        elif why == "epoch":
            raise errors.WrongEpochError(
                f"{self._objects.url} now belongs to another epoch of run {intent.name!r}; "
                "start the sink again"
            )
        elif why is None:
            waiting.put = self._pool.submit(
                self._objects.put_new,
                manifest.batches_prefix(self._run.config.run) + intent.name,
                waiting.body,
                sha256=waiting.sha256,
            )
        else:
            log.warning("put_waits", name=intent.name, why=why)
            waiting.not_before_s = self._clock.monotonic_s() + 1

    def _safe_on_disk(self) -> bool:
        if not redisio.aof_write_ok(self._run.client):
            return False
        with redisio.mapped_errors():
            replicas = int(self._run.client.info("replication").get("connected_slaves", 0))
            if not replicas:
                return True
            return int(self._run.client.wait(replicas, REPLICAS_WAIT_MS)) >= replicas

    def _collect(self) -> None:
        for waiting in [w for w in self._waiting.values() if w.put and w.put.done()]:
            put, waiting.put = waiting.put, None
            assert put
            try:
                put.result()
                self._commit(waiting)
            except errors.ObjectConflictError as error:
                self._broken.add(waiting.intent.name)
                del self._waiting[waiting.intent.name]
                log.error("object_conflict", name=waiting.intent.name, error=str(error))
            except UNREACHABLE as error:
                self._failed(waiting, error)

    def _failed(self, waiting: Waiting, error: errors.RegenError) -> None:
        waiting.failures += 1
        pause_s = min(RETRY_PAUSE_S * 2 ** (waiting.failures - 1), RETRY_PAUSE_MAX_S)
        waiting.not_before_s = self._clock.monotonic_s() + pause_s
        log.error("put_failed", name=waiting.intent.name, again_in_s=pause_s, error=str(error))

    def _commit(self, waiting: Waiting) -> None:
        call = transitions.commit(name=waiting.intent.name, size=len(waiting.body))
        out = self._run.queue.execute(call)
        if out.state == "corrupt":
            self._broken.add(waiting.intent.name)
            log.error("commit_refused", name=waiting.intent.name, detail=out.detail)
        else:
            self.batches += out.state == "ok"
            self.bytes += len(waiting.body)
        del self._waiting[waiting.intent.name]
        log.info(
            "batch_written",
            name=waiting.intent.name,
            records=waiting.intent.count,
            bytes=len(waiting.body),
            state=out.state,
        )
