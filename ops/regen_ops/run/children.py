"""The processes that regen-run starts: each with a log, ended in order, never left behind."""

import contextlib
import ctypes
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from regen_common import log
from regen_common.clock import Clock

PR_SET_PDEATHSIG: Final = 1
RESTARTS_MAX: Final = 20
RESTART_PAUSE_S: Final = 2.0
KILL_AFTER_S: Final = 20.0


_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    """On Linux: SIGTERM when regen-run is killed, so that nothing of it stays behind."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def command(module: str, *arguments: str) -> list[str]:
    """A command of this very installation."""
    return [sys.executable, "-m", module, *arguments]


@dataclass(kw_only=True)
class Child:
    """One process. ``logfile`` gets its output; it is in a session of its own, so that Ctrl-C
    reaches regen-run only, which ends its children in order."""

    name: str
    argv: Sequence[str]
    logfile: Path
    clock: Clock
    restarts: int = 0
    ended_at_s: float | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        with self.logfile.open("ab") as out:
            self.process = subprocess.Popen(
                list(self.argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - calls one function of libc
            )
        self.ended_at_s = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return None if self.process is None else self.process.poll()

    def keep_alive(self) -> None:
        """Start it again when it died without saying why; usage errors (2) stay."""
        if self.running or self.code in (0, 2, None) or self.restarts >= RESTARTS_MAX:
            return
        now_s = self.clock.monotonic_s()
        if self.ended_at_s is None:
            self.ended_at_s = now_s
            log.warning("child_died", name=self.name, code=self.code, log=str(self.logfile))
        elif now_s - self.ended_at_s >= RESTART_PAUSE_S:
            self.restarts += 1
            self.start()

    @property
    def given_up(self) -> bool:
        """It ended badly and will not be started again."""
        bad = self.code not in (0, None)
        return bad and (self.code == 2 or self.restarts >= RESTARTS_MAX)  # noqa: PLR2004

    def last_line(self) -> str:
        """What it said last, for an error message."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            lines = self.logfile.read_text("utf-8").splitlines()
            return log.scrub(next((line for line in reversed(lines) if line.strip()), ""))
        return ""

    def ask_to_end(self) -> None:
        if self.running:
            assert self.process
            self.process.send_signal(signal.SIGTERM)

    def wait_for_end(self, seconds: float = KILL_AFTER_S) -> None:
        """Wait for it, then kill it."""
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning("child_killed", name=self.name)
            self.process.kill()
            self.process.wait()


def end(children: Sequence[Child]) -> None:
    """End several at once."""
    for child in children:
        child.ask_to_end()
    for child in children:
        child.wait_for_end()
