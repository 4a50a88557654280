"""A simulation as a child process, for tests, benchmarks and demos.

``with Sim(version="0.5.23", max_running=4) as sim: ... sim.url``. Options are the flags of
``python -m regen_sim`` with underscores; true is a bare flag, a list repeats one.
"""

import contextlib
import functools
import http
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from regen_sim import replay

START_DEADLINE_S: Final = 30.0
_CALL_DEADLINE_S: Final = 10.0
_POLL_S: Final = 0.01
_TESTS: Final = Path(__file__).resolve().parent.parent
_READY: Final = "regen_sim listening on "


class SimError(RuntimeError):
    """It did not start, or refused what a test asked of it."""


class Sim:
    """One simulation. Its standard error goes where the caller's goes."""

    def __init__(self, **flags: Any) -> None:
        self._flags = flags
        self._process: subprocess.Popen[str] | None = None
        self.port = int(flags.pop("port", 0))
        self.host = str(flags.get("host", "127.0.0.1"))

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start, or start again on the same port; returns when it listens."""
        own = {"port": self.port, "parent_pid": os.getpid()}
        environment = dict(os.environ) | {"PYTHONPATH": str(_TESTS)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "regen_sim", *_arguments(self._flags | own)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.port = self._wait_for_port()
        except SimError:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """kill -9, and wait for its end."""
        self.signal(signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        """SIGTERM: it answers what is in flight, and then ends."""
        self.signal(signal.SIGTERM)

    def stop(self) -> None:
        """SIGSTOP: it hangs, sockets open."""
        self.signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    def wait(self, deadline_s: float = _CALL_DEADLINE_S) -> int:
        """Its exit code; subprocess.TimeoutExpired when it has not ended by then."""
        code = self._child.wait(deadline_s)
        if self._child.stdout is not None:
            self._child.stdout.close()
        return code

    def ask(self, messages: Any, **fields: Any) -> replay.Answer:
        """POST a chat request and wait for its answer; a string is one user message."""
        told = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return self.send(
            "POST", "/v1/chat/completions", {"model": "tiny", "messages": told} | fields
        )

    def ask_later(self, messages: Any, **fields: Any) -> "Future[replay.Answer]":
        """The same in the background; the server has the request when this returns."""
        before = self.stats(digests=False)["requests"]
        flight: Future[replay.Answer] = Future()
        ask = functools.partial(self.ask, messages, **fields)
        threading.Thread(target=_settle, args=(flight, ask), daemon=True).start()
        self.until(lambda seen: seen["requests"] > before)
        return flight

    def until(
        self, holds: Callable[[dict[str, Any]], bool], deadline_s: float = _CALL_DEADLINE_S
    ) -> dict[str, Any]:
        """The stats of the first moment when this holds of them; SimError if it never does."""
        end_s, pause = time.monotonic() + deadline_s, threading.Event()
        while not holds(seen := self.stats(digests=False)):
            if time.monotonic() > end_s:
                raise SimError(f"did not come to hold in {deadline_s} s: {seen}")
            pause.wait(_POLL_S)
        return seen

    def send(self, method: str, path: str, body: Any = None) -> replay.Answer:
        """Any request, and its answer."""
        return replay.send(self.host, self.port, {"method": method, "path": path, "body": body})

    def faults(self, **changes: Any) -> dict[str, Any]:
        """Change how it misbehaves: ``trivial={"rate": 0.5}``, ``freeze=True``, ``hang=None``."""
        found: dict[str, Any] = self._call("POST", "/_sim/faults", changes)
        return found

    def heal(self) -> None:
        """No faults from now on."""
        self._call("DELETE", "/_sim/faults")

    def stats(self, *, digests: bool = True) -> dict[str, Any]:
        """What it saw: README.md lists the fields."""
        found: dict[str, Any] = self._call("GET", f"/_sim/stats?digests={int(digests)}")
        return found

    def requests(self) -> list[Any]:
        """The bodies of the last 200 generation requests, oldest first."""
        found: list[Any] = self._call("GET", "/_sim/requests")
        return found

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    @property
    def _child(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise SimError("not started")
        return self._process

    def signal(self, number: signal.Signals) -> None:
        """Any signal; nothing when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def _wait_for_port(self) -> int:
        timer = threading.Timer(START_DEADLINE_S, self._child.kill)
        timer.start()
        try:
            line = self._child.stdout.readline() if self._child.stdout else ""
        finally:
            timer.cancel()
        if not line.startswith(_READY):
            raise SimError(f"regen_sim did not start: {line!r}")
        return int(line.rpartition(":")[2])

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.send(method, path, body)
        if answer.status != http.HTTPStatus.OK:
            raise SimError(f"{method} {path}: {answer.status} {answer.body}")
        return answer.body


def _settle(flight: "Future[replay.Answer]", ask: Callable[[], replay.Answer]) -> None:
    try:
        flight.set_result(ask())
    except (OSError, http.client.HTTPException) as error:
        flight.set_exception(error)


def _arguments(flags: dict[str, Any]) -> list[str]:
    arguments: list[str] = []
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif value is not None and value is not False:
            many = value if isinstance(value, list | tuple) else [value]
            arguments += [part for one in many for part in (flag, str(one))]
    return arguments
