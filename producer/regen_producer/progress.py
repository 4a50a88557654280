"""Progress of reading and queueing: bars on a terminal, one line per interval elsewhere."""

import sys
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from regen_common import log
from regen_common.clock import SystemClock
from regen_producer.intake import IntakeProgress

LINE_EVERY_S: Final = 10.0


class Progress:
    """A context manager; ``read`` and ``queued`` are the callbacks."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._next_s = self._clock.monotonic_s() + LINE_EVERY_S
        self._bars: Bars | None = None
        if sys.stderr.isatty():
            self._bars = Bars(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[what]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._reading = self._bars.add_task("reading", total=None, what="", visible=False)
            self._queueing = self._bars.add_task("queueing", total=None, what="", visible=False)

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars:
            self._bars.stop()

    def read(self, at: IntakeProgress) -> None:
        """Called while the input is read."""
        what = f"{at.rows:,} rows · {at.tools:,} with tools · {at.rejected:,} rejected"
        if self._bars:
            self._bars.update(
                self._reading,
                visible=True,
                completed=at.bytes_read,
                total=at.bytes_total or None,
                what=what,
            )
        elif self._due():
            log.info("reading", rows=at.rows, tools=at.tools, rejected=at.rejected)

    def queued(self, made: int) -> None:
        """Called while jobs are made."""
        if self._bars:
            self._bars.update(self._queueing, visible=True, completed=made, what=f"{made:,} jobs")
        elif self._due():
            log.info("queueing", jobs=made)

    def _due(self) -> bool:
        now_s = self._clock.monotonic_s()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + LINE_EVERY_S
        return True
