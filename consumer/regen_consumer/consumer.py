"""One consumer: its parts put together, and the order in which it leaves.

Leaving, each step for its reason: no more claims; what is in flight may end within the grace; the
rest is cancelled (which aborts it on the engine) and its leases go back to the front, in order;
waiting answers are delivered, since they are worth minutes of a GPU; the heartbeats end only now,
because they kept the leases of those answers; then RQ is told, and connections close. A second
order skips the waiting.
"""

import asyncio
import random
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from regen_common import errors, log, redisio
from regen_common.clock import Clock
from regen_common.queue import executor
from regen_common.run import opening
from regen_consumer import commands
from regen_consumer.answering import Answering, Identity
from regen_consumer.claiming import Claiming
from regen_consumer.configuring import Configuring
from regen_consumer.delivery import Delivery
from regen_consumer.engine.client import Engine
from regen_consumer.gpu_report import GpuReport
from regen_consumer.leases import Leases
from regen_consumer.leaving import Leaving
from regen_consumer.maintenance import Maintenance
from regen_consumer.prompts import Prompts
from regen_consumer.slots import Slots
from regen_consumer.upkeep import Heartbeats, Ticks
from regen_consumer.watch import Watch
from regen_consumer.work import Work
from regen_consumer.worker import RegenWorker, RqSide

CANCEL_S: Final = 5.0
DELIVER_S: Final = 60.0
"""How long leaving waits for a Redis that is away; the leases of what is lost then expire."""

HURRIED_S: Final = 3.0
"""The same when told to leave at once: giving leases back takes milliseconds."""

TTL_S_MIN: Final = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How one consumer was started. Times in seconds."""

    gpu: int
    host: str
    slots: int
    lease_s: float
    grace_s: float
    stall_s: float
    burst: bool
    store: str | None
    redis_url: str
    allow_model_change: bool


class Consumer:
    """One process per GPU. Made inside the event loop that it runs in."""

    def __init__(
        self, run: opening.OpenRun, engine: Engine, options: Options, clock: Clock
    ) -> None:
        rng = random.Random()
        self.name = _worker_name(run.config.run, options)
        self._engine = engine
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._prompts = _open_store(run, options)
        self._client = redisio.connect_async(options.redis_url)
        self._once = redisio.connect_async(options.redis_url, repeat=False)
        queue = executor.AsyncQueue(
            self._client, once=self._once, run=run.config.run, epoch=run.config.epoch
        )
        self._leaving = Leaving(clock)
        self._leases = Leases()
        self._rq = RqSide(self._make_worker(run))
        maintenance = Maintenance(run, me=self.name)
        self._delivery = Delivery(
            queue, worker=self.name, leases=self._leases, clock=clock, delivered=self._poke
        )
        answering = Answering(
            engine,
            self._prompts,
            identity=Identity(run=run.config.run, host=options.host, gpu=options.gpu),
            clock=clock,
        )
        configuring = Configuring(
            run,
            rq=self._rq,
            answering=answering,
            maintenance=maintenance,
            leaving=self._leaving,
            me=self.name,
            allow_model_change=options.allow_model_change,
        )
        self._watch = Watch(
            engine,
            ready=configuring.prove_engine,
            abandon=self._abandon,
            signs=self._signs,
            changed=self._poke,
            stall_s=options.stall_s,
            clock=clock,
            rng=rng,
        )
        claiming = Claiming(
            queue,
            configuring=configuring,
            maintenance=maintenance,
            watch=self._watch,
            leases=self._leases,
            leaving=self._leaving,
            worker=self.name,
            lease_s=options.lease_s,
            clock=clock,
            rng=rng,
        )
        self._work = Work(
            answering=answering,
            delivery=self._delivery,
            watch=self._watch,
            pausing=lambda: self._slots.pausing(),  # noqa: PLW0108 - slots are made below
            worker=self.name,
            gpu=options.gpu,
            clock=clock,
            rng=rng,
            stop=self._leaving.because_of,
        )
        self._slots = Slots(
            slots=options.slots,
            claim=claiming.claim,
            work=self._work.see_through,
            may_claim=lambda: self._watch.open,
            undelivered=lambda: self._delivery.undelivered,
            clock=clock,
            rng=rng,
        )
        self._beats = Heartbeats(
            queue, leases=self._leases, leaving=self._leaving, lease_s=options.lease_s
        )
        ttl_s = int(max(TTL_S_MIN, 3 * options.lease_s))
        self._ticks = Ticks(
            rq=self._rq,
            maintenance=maintenance,
            report=GpuReport(run.client, run.keys, host=options.host, gpu=options.gpu, ttl_s=ttl_s),
            watch=self._watch,
            answering=answering,
            slots=self._slots,
            delivery=self._delivery,
            work=self._work,
            leaving=self._leaving,
            burst=options.burst,
            clock=clock,
            rng=rng,
        )

    def leave(self) -> None:
        """SIGTERM: end in order. A second one gives everything back at once."""
        self._leaving.order()

    async def run(self) -> None:
        """Work until told to leave, or with ``burst`` until the run has nothing more to do.

        Raises what made it stop, if something did.
        """
        await self._leaving.patiently(self._rq.birth)
        log.info("consumer_started", worker=self.name, engine=self._engine.url)
        delivering = self._spawn(self._delivery.run())
        loops = [
            self._spawn(part.run()) for part in (self._watch, self._beats, self._ticks, self._slots)
        ]
        await self._leaving.wait()
        await self._leave(delivering, loops)
        if self._leaving.error is not None:
            raise self._leaving.error

    # --- leaving

    async def _leave(self, delivering: asyncio.Task[None], loops: list[asyncio.Task[None]]) -> None:
        log.info(
            "consumer_leaving",
            in_flight=self._slots.in_flight,
            grace_s=self._options.grace_s,
            hint="the same signal again: at once",
        )
        self._slots.leave()
        self._watch.close()
        if not self._leaving.run_is_gone:
            grace_s = self._options.grace_s
            await self._leaving.unless_hurried(self._slots.drained(grace_s), within_s=grace_s)
            handing_over = self._spawn(self._hand_over(delivering))
            if self._leaving.hurried:
                await asyncio.wait({handing_over}, timeout=HURRIED_S)
            else:
                await self._leaving.unless_hurried(asyncio.shield(handing_over), within_s=DELIVER_S)
        self._slots.cancel_all()
        await self._slots.drained(CANCEL_S)
        if self._delivery.undelivered:
            log.error("answers_lost", count=self._delivery.undelivered)
        self._leases.clear()
        await asyncio.gather(*loops, return_exceptions=True)
        await self._say_goodbye()
        self._prompts.close()
        await self._engine.close()
        log.info("consumer_left", accepted=self._delivery.accepted, dropped=self._delivery.dropped)

    async def _hand_over(self, delivering: asyncio.Task[None]) -> None:
        """Leases back, then the answers that still wait."""
        await self._give_back("leaving")
        self._delivery.close()
        await delivering

    async def _say_goodbye(self) -> None:
        try:
            if not self._leaving.run_is_gone:
                await self._ticks.publish("left")
            await self._rq.death()
        except errors.RedisError as error:
            log.warning("goodbye_failed", error=str(error))
        self._rq.close()
        await self._client.aclose()
        await self._once.aclose()

    async def _give_back(self, why: str) -> None:
        """Cancel what is in flight and give its leases back in one call, in order."""
        self._slots.cancel_all()
        await self._slots.drained(CANCEL_S)
        leases = self._leases.in_hand()
        if leases:
            await self._delivery.release(leases)
            log.info("leases_given_back", jobs=len(leases), why=why)

    # --- what the parts tell each other

    def _poke(self) -> None:
        self._slots.poke()

    async def _abandon(self, why: str) -> None:
        if self._slots.open_jobs:
            await self._give_back(why)

    def _signs(self) -> tuple[int, int]:
        """Answers and faults so far, and requests in flight."""
        answers = self._delivery.accepted + self._delivery.dropped + self._delivery.undelivered
        return answers + self._work.faults, self._slots.in_flight

    def _spawn(self, what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(what)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A loop ended: by order, or it can't go on."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not isinstance(error, errors.RegenError):
            broken = errors.RegenError(f"a loop of the consumer broke: {error!r}; please report it")
            broken.__cause__ = error
            error = broken
        self._leaving.because_of(error)

    # --- RQ

    def _make_worker(self, run: opening.OpenRun) -> RegenWorker:
        return RegenWorker(
            list(run.keys.queues),
            name=self.name,
            connection=redisio.connect(self._options.redis_url),
            ttl_s=int(max(TTL_S_MIN, 2 * self._options.lease_s)),
            on_command=self._from_rq,
        )

    def _from_rq(self, payload: dict[str, Any]) -> None:
        """Called on RQ's pubsub thread."""
        self._loop.call_soon_threadsafe(self._obey, payload)

    def _obey(self, payload: dict[str, Any]) -> None:
        order = commands.read(payload, self._leases)
        log.info("rq_command", command=payload.get("command"))
        if order.leave:
            self._leaving.order()
        for eid in order.stop:
            self._work.stopped_by_user.add(eid)
            self._slots.cancel(eid)
        if order.give_back:
            self._spawn(self._give_back("kill-horse"))


def _open_store(run: opening.OpenRun, options: Options) -> Prompts:
    """The run's own prompts, and no others."""
    folder = Path(options.store or run.config.store)
    prompts = Prompts(folder)
    if prompts.fingerprint != run.config["input_fingerprint"]:
        prompts.close()
        raise errors.StoreError(
            f"{folder} is not the store of run {run.config.run!r}; name it with --store"
        )
    return prompts


def _worker_name(run: str, options: Options) -> str:
    """Unique per process: RQ refuses a name whose last owner was killed until its key expires."""
    host = "".join(c if c.isalnum() or c in "-_" else "-" for c in options.host)
    return f"{run}-{host}-gpu{options.gpu}-{secrets.token_hex(3)}"
