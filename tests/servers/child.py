"""A server as a child process: started until it answers, ended by its own process id."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

START_DEADLINE_S = 30
_POLL_S = 0.02


class Child:
    """One process. What it says goes to ``log``."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def wait_until(self, answers: Callable[[], bool]) -> None:
        """Return once ``answers``; RuntimeError with the log when it ended, or never answered."""
        deadline_s = time.monotonic() + START_DEADLINE_S
        while not answers():
            if self._has_ended() or time.monotonic() > deadline_s:
                self.kill()
                raise RuntimeError(f"{self._process.args!r}\n{self.log.read_text()[-5000:]}")

    def kill(self) -> None:
        """kill -9 of this one process; of nothing when it has ended."""
        self._process.kill()
        self._process.wait()

    def _has_ended(self) -> bool:
        try:
            self._process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            return False
        return True
