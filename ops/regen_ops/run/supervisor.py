"""The order in which regen-run starts, watches and ends its processes.

Start: Redis, engine, producer (to its end), consumers and sink. End, each for its reason:
consumers first (their leases go back and their answers are delivered), then the sink (it finishes
what it is writing), then the engine (nobody asks it any more), Redis last (all others report to
it). Any of them may be killed at any moment: the same command goes on.
"""

import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from regen_common import errors, log
from regen_common.clock import Clock
from regen_common.queue import transitions
from regen_common.run import opening
from regen_ops import requeue
from regen_ops.run import demo_rows
from regen_ops.run.children import Child, command, end
from regen_ops.run.embedded import EmbeddedRedis
from regen_ops.run.layout import Layout
from regen_ops.status import building, reading
from regen_ops.status.report import Report

ENGINE_DEADLINE_S: Final = 120.0
POLL_S: Final = 0.5
CONSUMER_GRACE_S: Final = 5


class InterruptedRunError(errors.RegenError):
    """Ctrl-C or SIGTERM: everything ended in order."""

    exit_code = errors.EXIT_INTERRUPTED


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to run. ``engines``: one consumer each; ``produce`` and ``consume``: further flags."""

    run: str
    inputs: list[str]
    layout: Layout
    redis: str | None
    engines: list[str]
    engine_kind: str
    demo: bool
    produce: list[str]
    consume: list[str]
    sink: list[str]
    concurrency: int
    retry_failed: bool
    resume: bool


class Supervisor:
    """One regen-run. ``show(report)`` is called about twice a second."""

    def __init__(self, plan: Plan, *, clock: Clock, show: Callable[[Report], None]) -> None:
        self._plan = plan
        self._clock = clock
        self._show = show
        self._redis = EmbeddedRedis(plan.layout.redis, clock=clock)
        self._engine: Child | None = None
        self._workers: list[Child] = []
        self._sink: Child | None = None
        self._interrupted = False
        self._so_far = ""
        self.url = ""
        self.own_redis: str | None = None
        """Its URL, for other commands to name while this runs."""

    def run(self) -> Report:
        """The whole run. Returns the last report.

        Raises :class:`InterruptedRunError` after Ctrl-C, once everything has ended in order.
        """
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._interrupt)
        try:
            self.url = self._plan.redis or self._start_redis()
            engines = self._start_engine()
            self._produce()
            opened = opening.open_run(self.url, self._plan.run, allow_volatile=False)
            if self._plan.retry_failed:
                self._retry_failed(opened)
            if self._plan.resume and opened.queue.execute(transitions.resume()):
                log.info("run_resumed")
            self._start_workers(engines)
            return self._watch(opened)
        finally:
            self._end()

    # --- start

    def _start_redis(self) -> str:
        self.own_redis = self._redis.start()
        log.info("redis_started", url=self.own_redis)
        return self.own_redis

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True

    def _check_interrupted(self) -> None:
        if self._interrupted:
            raise InterruptedRunError(f"stopped{self._so_far}; the same command goes on from here")

    def _start_engine(self) -> list[str]:
        if not self._plan.demo:
            return self._plan.engines
        url_file = self._plan.layout.home / "engine.url"
        url_file.unlink(missing_ok=True)
        self._engine = Child(
            name="engine",
            argv=command("regen_ops.run.demo_engine", str(url_file)),
            logfile=self._plan.layout.logs / "engine.log",
            clock=self._clock,
        )
        self._engine.start()
        log.info("demo_engine_starting", model="SmolLM2-135M", log=str(self._engine.logfile))
        deadline_s = self._clock.monotonic_s() + ENGINE_DEADLINE_S
        while not url_file.exists():
            self._check_interrupted()
            if not self._engine.running or self._clock.monotonic_s() > deadline_s:
                raise errors.EngineRefusedError(
                    f"the demo's engine does not start: {self._engine.last_line()}"
                )
            self._clock.sleep(POLL_S / 5)
        return [url_file.read_text().strip()] * 2  # two consumers share it

    def _produce(self) -> None:
        plan = self._plan
        inputs = plan.inputs
        if plan.demo:
            inputs = [self._demo_input()]
        arguments = [*inputs, "--run", plan.run, "--redis", self.url]
        arguments += ["--to", plan.layout.destination, "--store", str(plan.layout.store)]
        self._to_its_end("regen_producer.cli", *arguments, *plan.produce)

    def _demo_input(self) -> str:
        """Choose the demo's rows once, through the producer's own reader."""
        layout = self._plan.layout
        if not layout.demo_input.exists():
            dataset = str(demo_rows.find_dataset())
            self._to_its_end(
                "regen_producer.cli",
                *[dataset, "--dry-run", "--allow-truncated", "--dump", str(layout.demo_dump)],
            )
            demo_rows.write(layout.demo_dump, layout.demo_input)
            layout.demo_dump.unlink()
        return str(layout.demo_input)

    def _to_its_end(self, module: str, *arguments: str) -> None:
        """Run a command of ours in front, its messages on this terminal."""
        process = subprocess.Popen(command(module, *arguments), start_new_session=True)
        while process.poll() is None:
            if self._interrupted:
                process.send_signal(signal.SIGTERM)
                process.wait()
            self._clock.sleep(POLL_S / 10)
        self._check_interrupted()
        if process.returncode:
            raise _ChildFailedError(process.returncode)

    def _retry_failed(self, opened: opening.OpenRun) -> None:
        back = requeue.retry(opened)
        log.info("failed_sent_again", prompts=back)

    def _start_workers(self, engines: list[str]) -> None:
        plan = self._plan
        shared = ["--run", plan.run, "--redis", self.url, "--burst"]
        for number, engine in enumerate(engines):
            arguments = ["--gpu", str(number), "--engine", engine]
            arguments += ["--engine-kind", plan.engine_kind, "--concurrency", str(plan.concurrency)]
            arguments += ["--grace", str(CONSUMER_GRACE_S), *plan.consume]
            self._workers.append(
                self._child(f"consumer-{number}", "regen_consumer.cli", *shared, *arguments)
            )
        self._sink = self._child("sink", "regen_consumer.sink.cli", *shared, *plan.sink)

    def _child(self, name: str, module: str, *arguments: str) -> Child:
        child = Child(
            name=name,
            argv=command(module, *arguments),
            logfile=self._plan.layout.logs / f"{name}.log",
            clock=self._clock,
        )
        child.start()
        return child

    # --- watch

    def _watch(self, opened: opening.OpenRun) -> Report:
        assert self._sink
        while True:
            self._check_interrupted()
            report = building.build(reading.read(opened))
            totals, answered = report.totals, report.places["stream"]
            self._so_far = f" with {totals.done + answered:,} of {totals.input:,} answered"
            self._show(report)
            if report.state == "halted":
                return report
            if self._sink.code == 0 and report.state == "finished":
                return report
            for child in [*self._workers, self._sink]:
                child.keep_alive()
            self._check_given_up()
            self._clock.sleep(POLL_S)

    def _check_given_up(self) -> None:
        assert self._sink
        lost = self._sink if self._sink.given_up else None
        if all(worker.given_up for worker in self._workers):
            lost = self._workers[0]
        if lost is not None:
            raise errors.RegenError(
                f"{lost.name} can't go on: {_without_prefix(lost.last_line())} "
                f"(log: {lost.logfile})"
            )

    # --- end

    def _end(self) -> None:
        end(self._workers)
        if self._sink is not None:
            end([self._sink])
        if self._engine is not None:
            end([self._engine])
        if self._plan.redis is None and self.url:
            self._redis.stop()


class _ChildFailedError(errors.RegenError):
    """A command in front failed; it has said why itself."""

    def __init__(self, code: int) -> None:
        super().__init__("see the message above")
        self.exit_code = code


def _without_prefix(line: str) -> str:
    return line.partition("error: ")[2] or line
