"""What any consumer does for the whole run, whoever else is alive: reap, top up, heal.

Runs on the helper thread, a bounded piece per tick.
"""

from collections.abc import Iterator
from typing import Final

from regen_common import log, redisio
from regen_common.queue import topup, transitions
from regen_common.run import books, config, opening

FILL_CALLS: Final = 20
SWEEP_CALLS: Final = 10
SWEEP_LOCK_S: Final = 30
UNACCOUNTED_TICKS: Final = 2
"""A stock ``rq`` command takes a job out of one place before it is in the next: not at once."""


class Maintenance:
    """One consumer's share of the run's upkeep."""

    def __init__(self, run: opening.OpenRun, *, me: str) -> None:
        self._run = run
        self._me = me
        self._offsets = dict.fromkeys(run.keys.queues, 0)
        self.configure(run.config)
        self._sweeping: Iterator[int] | None = None
        self._deep = False
        self._unaccounted_ticks = 0
        self.books: books.Books | None = None

    def configure(self, config: config.Config) -> None:
        """The window or the input's size may have changed."""
        run = self._run
        self._top = topup.TopUp(
            run.client, run.queue, size=config.input, max_queued=config["max_queued"]
        )
        self._sweep = topup.Sweep(run.client, run.queue, size=config.input)

    def tick(self) -> None:
        """One round. Raises what Redis' state asks for; the next tick tries again."""
        self._reap()
        self._top.fill(calls_max=FILL_CALLS)
        counted = self._run.queue.execute(transitions.books())
        self.books = books.from_counted(counted)
        self._heal(self.books.unaccounted)

    def _reap(self) -> None:
        for queue in self._run.keys.queues:
            back, self._offsets[queue] = self._run.queue.execute(
                transitions.reap(queue=queue, offset=self._offsets[queue])
            )
            if back:
                log.warning("leases_reaped", queue=queue, jobs=back)

    def _heal(self, unaccounted: int) -> None:
        if unaccounted <= 0:
            self._unaccounted_ticks, self._sweeping, self._deep = 0, None, False
            return
        self._unaccounted_ticks += 1
        if self._unaccounted_ticks < UNACCOUNTED_TICKS or not self._my_turn():
            return
        if self._sweeping is None:
            log.warning("prompts_unaccounted", count=unaccounted, deep=self._deep)
            self._sweeping = self._sweep.run(deep=self._deep)
        made = 0
        for _ in range(SWEEP_CALLS):
            step = next(self._sweeping, None)
            if step is None:  # the next sweep looks through the queue lists as well
                self._sweeping, self._deep = None, not self._deep
                break
            made += step
        if made:
            log.warning("prompts_put_back", count=made)

    def _my_turn(self) -> bool:
        """One sweeper at a time is enough; who has the turn keeps it while it lives."""
        key = self._run.keys.sweep
        with redisio.mapped_errors():
            client = self._run.client
            if client.set(key, self._me, nx=True, ex=SWEEP_LOCK_S):
                return True
            if redisio.text(client.get(key) or b"") != self._me:
                return False
            client.expire(key, SWEEP_LOCK_S)
        return True
