"""One consumer: its parts put together, its loops, and the order in which it leaves.

Leaving, each step for its reason: no more claims; what is in flight may end within the grace; the
rest is cancelled (which aborts it on the engine) and its leases go back to the front, in order;
waiting answers are delivered, since they are worth minutes of a GPU; the heartbeats end only now,
because they kept the leases of those answers; then RQ is told, and connections close.
"""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from regen_common import errors, log, redisio
from regen_common.clock import Clock
from regen_common.queue import executor, transitions
from regen_common.run import config, keys, opening
from regen_consumer import commands, pull
from regen_consumer.answering import Answering, Identity
from regen_consumer.delivery import WAITABLE, Delivery
from regen_consumer.engine.client import Engine
from regen_consumer.engine.faults import Fault
from regen_consumer.gpu_report import GpuReport
from regen_consumer.leases import Leases
from regen_consumer.maintenance import Maintenance
from regen_consumer.prompts import Prompts
from regen_consumer.slots import Slots
from regen_consumer.watch import Watch
from regen_consumer.work import Work
from regen_consumer.worker import RegenWorker, RqSide

TICK_S: Final = 2.0
"""Reaping, topping up, reporting. With the lease this bounds how long a dead consumer is missed."""

BEAT_SHARE: Final = 3  # heartbeats per lease
REDIS_PAUSE_S: Final = 1.0
CLAIM_UNAVAILABLE: Final = transitions.Claim("unavailable", 0, [])


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
    """One process per GPU."""

    def __init__(
        self, run: opening.OpenRun, engine: Engine, options: Options, clock: Clock
    ) -> None:
        self._run = run
        self._engine = engine
        self._options = options
        self._clock = clock
        self._rng = random.Random()
        self.name = _worker_name(run.config.run, options)
        self._leases = Leases()
        self._leaving = asyncio.Event()
        self._error: errors.RegenError | None = None
        self._client = redisio.connect_async(options.redis_url)
        self._once = redisio.connect_async(options.redis_url, repeat=False)
        self._queue = executor.AsyncQueue(
            self._client, once=self._once, run=run.config.run, epoch=run.config.epoch
        )
        self._prompts = Prompts(Path(options.store or run.config.store))
        self._config = run.config
        self._reload = asyncio.Lock()
        self._delivery = Delivery(
            self._queue,
            worker=self.name,
            leases=self._leases,
            clock=clock,
            delivered=self._poke,
        )
        self._answering = Answering(
            engine,
            self._prompts,
            identity=Identity(run=run.config.run, host=options.host, gpu=options.gpu),
            clock=clock,
        )
        self._watch = Watch(
            engine,
            ready=self._ready,
            abandon=self._abandon,
            signs=self._signs,
            stall_s=options.stall_s,
            clock=clock,
            rng=self._rng,
        )
        self._work = Work(
            answering=self._answering,
            delivery=self._delivery,
            leases=self._leases,
            watch=self._watch,
            worker=self.name,
            gpu=options.gpu,
            clock=clock,
            rng=self._rng,
            stop=self.stop,
        )
        self._slots = Slots(
            slots=options.slots,
            claim=self._claim,
            work=self._work.see_through,
            may_claim=lambda: self._watch.open,
            undelivered=lambda: self._delivery.undelivered,
            clock=clock,
            rng=self._rng,
        )
        self._work.slots = self._slots
        self._watch.changed = self._slots.poke
        self._maintenance = Maintenance(run, me=self.name)
        self._report = GpuReport(
            run.client,
            run.keys,
            host=options.host,
            gpu=options.gpu,
            ttl_s=int(max(30, 3 * options.lease_s)),
        )
        # made in `run`: the worker's pubsub thread speaks to this loop
        self._rq: RqSide | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- life

    async def run(self) -> None:
        """Work until told to leave, or with ``burst`` until the run has nothing more to do.

        Raises what made it stop, if something did.
        """
        self._loop = asyncio.get_running_loop()
        self._rq = RqSide(self._make_worker())
        await self._patiently(self._rq.birth)
        log.info("consumer_started", worker=self.name, engine=self._engine.url)
        delivering = asyncio.create_task(self._delivery.run())
        loops = [
            asyncio.create_task(loop)
            for loop in (self._watch.run(), self._beats(), self._ticks(), self._slots.run())
        ]
        for task in [delivering, *loops]:
            task.add_done_callback(self._ended)
        await self._leaving.wait()
        await self._leave(delivering, loops)
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """SIGTERM: end in order. A second one gives everything back at once."""
        if self._leaving.is_set():
            self._slots.cancel_all()
        self._leaving.set()

    def stop(self, error: errors.RegenError) -> None:
        """End in order because of ``error``."""
        if self._error is None:
            self._error = error
        self._leaving.set()

    async def _leave(self, delivering: asyncio.Task[None], loops: list[asyncio.Task[None]]) -> None:
        log.info("consumer_leaving", in_flight=self._slots.in_flight, grace_s=self._options.grace_s)
        self._slots.leave()
        self._watch.close()
        if not isinstance(self._error, errors.WrongEpochError):
            await self._slots.drained(self._options.grace_s)
            await self._give_back("leaving")
            self._delivery.close()
            await delivering
        else:  # nothing of this epoch is taken any more
            self._slots.cancel_all()
            await self._slots.drained(1.0)
            delivering.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        assert self._rq
        try:
            await self._publish("left")
            await self._rq.death()
        except errors.RedisError as error:
            log.warning("goodbye_failed", error=str(error))
        self._rq.close()
        self._prompts.close()
        await self._engine.close()
        await self._client.aclose()
        await self._once.aclose()
        log.info("consumer_left", accepted=self._delivery.accepted, dropped=self._delivery.dropped)

    async def _give_back(self, why: str) -> None:
        """Cancel what is in flight and give its leases back in one call, in order."""
        self._slots.cancel_all()
        await self._slots.drained(5.0)
        leases = self._leases.in_hand()
        if leases:
            await self._delivery.release(leases)
            log.info("leases_given_back", jobs=len(leases), why=why)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A loop ended: by order, or it can't go on."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, errors.RegenError):
            self.stop(error)
        else:
            broken = errors.RegenError(f"a loop of the consumer broke: {error!r}; please report it")
            broken.__cause__ = error
            self.stop(broken)

    def _make_worker(self) -> RegenWorker:
        return RegenWorker(
            list(self._run.keys.queues),
            name=self.name,
            connection=redisio.connect(self._options.redis_url),
            ttl_s=int(max(30, 2 * self._options.lease_s)),
            on_command=self._from_rq,
        )

    def _from_rq(self, payload: dict[str, Any]) -> None:
        """Called on RQ's pubsub thread."""
        assert self._loop
        self._loop.call_soon_threadsafe(self._obey, payload)

    def _obey(self, payload: dict[str, Any]) -> None:
        order = commands.read(payload, self._leases)
        log.info("rq_command", command=payload.get("command"))
        if order.leave:
            self.leave()
        for eid in order.stop:
            self._work.stopped_by_user.add(eid)
            self._slots.cancel(eid)
        if order.give_back:
            self._spawn(self._give_back("kill-horse"))

    def _spawn(self, what: Awaitable[None]) -> None:
        task = asyncio.ensure_future(what)
        task.add_done_callback(self._ended)

    # --- claims

    def _poke(self) -> None:
        self._slots.poke()

    async def _claim(self, n: int) -> transitions.Claim:
        by_weight = pull.weights(self._remaining(), self._config["weights"])
        queues = [self._run.keys.queue(c) for c in pull.order(by_weight, self._rng)]
        call = transitions.claim(
            queues=queues,
            n=n,
            token=secrets.token_hex(6),
            worker=self.name,
            lease_s=self._options.lease_s,
        )
        try:
            claim = await self._queue.execute(call)
        except WAITABLE as error:
            log.warning("redis_waited_for", transition="claim", error=str(error))
            await self._clock.asleep(REDIS_PAUSE_S)
            return CLAIM_UNAVAILABLE
        for job in claim.jobs:
            self._leases.add(job)
        if claim.jobs and claim.config_version != self._config.version:
            await self._patiently(self._reconfigure_or_stop)
        return claim

    async def _reconfigure_or_stop(self) -> None:
        try:
            await self._reconfigure()
        except errors.UsageError as error:
            self.stop(error)
        except Fault as fault:
            await self._watch.give_up(f"{fault.klass}: {fault}")

    def _remaining(self) -> dict[str, int]:
        counted = self._maintenance.books
        if counted is None:
            return {c: self._config.plan[c] for c in keys.CATEGORIES}
        return {name: c.queued + c.not_enqueued for name, c in counted.categories.items()}

    async def _reconfigure(self) -> None:
        """Before the next POST: what was just claimed is asked under the new configuration.

        A configuration that the engine refuses stops the consumer; an engine that can't be asked
        now is lost, and the preflight of its return asks under the new configuration.
        """
        async with self._reload:
            assert self._rq
            found = await self._rq.call(config.load, self._run.client, self._config.run)
            if found.version != self._config.version:
                log.info("configuration", version=found.version)
                self._config = found
                self._maintenance.configure(found)
                await self._answering.configure(found)

    # --- the engine

    async def _ready(self) -> None:
        """The engine looks well: prove it, pin the model, take its facts."""
        try:
            await self._answering.get_ready(self._config)
            await self._patiently(self._pin_model)
        except errors.UsageError as error:
            self.stop(error)
            raise

    async def _pin_model(self) -> None:
        assert self._rq
        model = self._answering.model_pin()
        pinned = self._config["model"]
        if pinned is None:
            change = {"model": model}
            self._config = await self._rq.call(self._change, change)
        elif pinned != model:
            if not self._options.allow_model_change:
                raise errors.EngineRefusedError(
                    f"{self._engine.url} serves {model['name']!r} (weights "
                    f"{model['weight_version']}), and run {self._config.run!r} was begun with "
                    f"{pinned['name']!r} ({pinned['weight_version']}); start the right model, or "
                    "use --allow-model-change"
                )
            log.warning("model_changed", now=model["name"], pinned=pinned["name"])

    def _change(self, values: dict[str, Any]) -> config.Config:
        return config.change(self._run.client, self._run.queue, values, who=self.name)

    async def _abandon(self, why: str) -> None:
        if self._slots.open_jobs:
            await self._give_back(why)

    def _signs(self) -> tuple[int, int]:
        answered = self._delivery.accepted + self._delivery.dropped + self._delivery.undelivered
        return answered + self._work.faults, self._slots.in_flight

    # --- beats and ticks

    async def _beats(self) -> None:
        """Extend all leases, as long as there are any or the consumer works."""
        pause_s = self._options.lease_s / BEAT_SHARE
        while not self._leaving.is_set() or len(self._leases):
            await self._sleep(pause_s)
            held = self._leases.all()
            if not held:
                continue
            call = transitions.heartbeat(leases=held, lease_s=self._options.lease_s)
            try:
                gone = await self._queue.execute(call)
            except WAITABLE as error:
                log.warning("redis_waited_for", transition="heartbeat", error=str(error))
                continue
            for job in self._leases.lost(eid for _, eid in gone):
                log.warning("lease_lost", index=job.lease.index)

    async def _ticks(self) -> None:
        """Upkeep of the run, what others see of us, and the end of a burst."""
        while not self._leaving.is_set():
            await self._patiently(self._tick)
            await self._sleep(TICK_S * self._rng.uniform(0.8, 1.2))

    async def _tick(self) -> None:
        assert self._rq
        await self._rq.beat(self._slots.state)
        await self._rq.call(self._maintenance.tick)
        if self._watch.open:
            await self._answering.look()
        await self._publish(self._shown_state())
        counted = self._maintenance.books
        if self._options.burst and counted is not None and not self._slots.open_jobs:
            left = counted.not_enqueued + counted.queued + counted.leased
            if not left and not self._delivery.undelivered:
                log.info("burst_over")
                self._leaving.set()

    def _shown_state(self) -> str:
        return self._slots.state if self._watch.open else f"engine {self._watch.state}"

    async def _publish(self, state: str) -> None:
        assert self._rq
        values = {
            "state": state,
            "running": self._slots.in_flight,
            "slots": self._slots.slots,
            "last_error": self._watch.last_error or self._work.last_error,
            "worker": self.name,
            **self._answering.shown(self._clock.monotonic_s()),
        }
        await self._rq.call(self._report.publish, values)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not through the order to leave."""
        if self._leaving.is_set():
            await self._clock.asleep(min(seconds, 0.2))
            return
        try:
            async with asyncio.timeout(seconds):
                await self._leaving.wait()
        except TimeoutError:
            return

    async def _patiently(self, step: Callable[[], Awaitable[None]]) -> None:
        """Do a step that needs Redis, again and again while Redis is away."""
        while True:
            try:
                await step()
            except WAITABLE as error:
                log.warning("redis_waited_for", error=str(error))
                await self._sleep(REDIS_PAUSE_S)
                if self._leaving.is_set():
                    return
            else:
                return


def _worker_name(run: str, options: Options) -> str:
    """Unique per process: RQ refuses a name whose last owner was killed until its key expires."""
    host = "".join(c if c.isalnum() or c in "-_" else "-" for c in options.host)
    return f"{run}-{host}-gpu{options.gpu}-{secrets.token_hex(3)}"
