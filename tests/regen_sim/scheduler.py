"""Who runs and who waits: at most so many at once, first come, first served.

A job's tokens come evenly over its time, so that counters move while it runs. Frozen, nothing
moves and nobody ends.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Ending = Literal["done", "aborted", "aborted_waiting"]


@dataclass(kw_only=True, slots=True, eq=False)
class Job:
    """One generation. ``duration_s`` may be infinite; ``on_end`` is called once, with the tokens
    that it came to."""

    rid: str
    tokens: int
    duration_s: float
    on_end: Callable[[Ending, int], None]
    arrived_s: float = 0.0
    started_s: float | None = None
    spent_s: float = 0.0  # before the last freeze
    running_since_s: float = 0.0
    timer: asyncio.TimerHandle | None = None

    def tokens_by(self, now_s: float, *, frozen: bool) -> int:
        """How many tokens it has at that time."""
        if self.started_s is None:
            return 0
        spent_s = self.spent_s + (0.0 if frozen else now_s - self.running_since_s)
        if self.duration_s <= 0:
            return self.tokens
        return math.floor(self.tokens * min(1.0, spent_s / self.duration_s))


class Scheduler:
    """Running and waiting jobs, and what passed through."""

    def __init__(self, *, running_max: int, waiting_max: int | None) -> None:
        self.running: set[Job] = set()
        self.waiting: deque[Job] = deque()
        self.frozen = False
        self.tokens_ended = 0
        self.running_peak = 0
        self.waiting_peak = 0
        self.waited_s = 0.0
        self.waited_s_max = 0.0
        self._running_max = running_max
        self._waiting_max = waiting_max
        self._busy_s = 0.0
        self._busy_until_s = time.monotonic()
        self._filling = False

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting

    @property
    def busy_s(self) -> float:
        """Slot seconds so far: the integral of the running over time."""
        self._count_busy(time.monotonic())
        return self._busy_s

    def tokens_now(self) -> int:
        """Tokens of all jobs ever, those of the running ones so far among them."""
        now_s = time.monotonic()
        return self.tokens_ended + sum(
            job.tokens_by(now_s, frozen=self.frozen) for job in self.running
        )

    def submit(self, job: Job) -> bool:
        """Start it or let it wait; False when the queue is full."""
        full = len(self.running) >= self._running_max
        if full and self._waiting_max is not None and len(self.waiting) >= self._waiting_max:
            return False
        job.arrived_s = time.monotonic()
        self.waiting.append(job)
        if full:
            self.waiting_peak = max(self.waiting_peak, len(self.waiting))
        self._fill()
        return True

    def abort(self, job: Job) -> None:
        """End it with what it has; nothing when it has ended."""
        if job in self.running:
            self._end(job, "aborted")
        elif job in self.waiting:
            self.waiting.remove(job)
            job.on_end("aborted_waiting", 0)

    def freeze(self, *, frozen: bool) -> None:
        """Stop the time of all jobs, or let it go on."""
        if frozen == self.frozen:
            return
        now_s = time.monotonic()
        self.frozen = frozen
        for job in list(self.running):
            if frozen:
                job.spent_s += now_s - job.running_since_s
                _stop_timer(job)
            else:
                self._go(job, now_s)

    def _fill(self) -> None:
        if self._filling:  # a job of no time ended within its own start
            return
        self._filling = True
        try:
            while self.waiting and len(self.running) < self._running_max:
                self._start(self.waiting.popleft())
        finally:
            self._filling = False

    def _start(self, job: Job) -> None:
        now_s = time.monotonic()
        waited_s = now_s - job.arrived_s
        self.waited_s += waited_s
        self.waited_s_max = max(self.waited_s_max, waited_s)
        self._count_busy(now_s)
        self.running.add(job)
        self.running_peak = max(self.running_peak, len(self.running))
        job.started_s = now_s
        self._go(job, now_s)

    def _go(self, job: Job, now_s: float) -> None:
        job.running_since_s = now_s
        if self.frozen or job.duration_s == math.inf:
            return
        left_s = job.duration_s - job.spent_s
        if left_s <= 0:
            self._end(job, "done")
        else:
            job.timer = asyncio.get_running_loop().call_later(left_s, self._end, job, "done")

    def _end(self, job: Job, ending: Ending) -> None:
        now_s = time.monotonic()
        self._count_busy(now_s)
        _stop_timer(job)
        self.running.discard(job)
        done = ending == "done"
        tokens = job.tokens if done else job.tokens_by(now_s, frozen=self.frozen)
        self.tokens_ended += tokens
        job.on_end(ending, tokens)
        self._fill()

    def _count_busy(self, now_s: float) -> None:
        self._busy_s += len(self.running) * (now_s - self._busy_until_s)
        self._busy_until_s = now_s


def _stop_timer(job: Job) -> None:
    if job.timer is not None:
        job.timer.cancel()
        job.timer = None
