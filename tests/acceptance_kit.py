"""For acceptance tests: our commands as processes, as a user types them, and conditions to wait for."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import redis

BIN = Path(os.environ.get("REGEN_BIN", Path(sys.executable).parent))
POLL_S = 0.1


def wait_until(condition: Callable[[], Any], *, within_s: float, what: str) -> Any:
    """The first true value of ``condition``; AssertionError after the deadline."""
    deadline_s = time.monotonic() + within_s
    waiter = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {within_s} s: {what}")
        waiter.wait(POLL_S)


class Node:
    """One machine with a Redis: starts commands in a folder of its own, and ends them all."""

    def __init__(self, folder: Path, redis_url: str, **env: str) -> None:
        self.folder = folder
        self.redis_url = redis_url
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("REGEN_", "RQ_"))}
        self.env |= {"REGEN_REDIS_URL": redis_url, "COLUMNS": "200", **env}
        self.processes: list[Process] = []

    def run(self, *words: str, within_s: float = 60, code: int | None = 0) -> "Ended":
        """A command to its end. ``code``: what it must exit with (None: anything)."""
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=within_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        ended = Ended(done.returncode, done.stdout, done.stderr)
        assert code is None or ended.code == code, f"{words}: {ended}"
        return ended

    def start(self, *words: str, **env: str) -> "Process":
        """A command in the background; its output in a file."""
        process = Process(words, self.folder, self.env | env)
        self.processes.append(process)
        return process

    def status(self, run: str = "regen") -> dict[str, Any]:
        return dict(orjson.loads(self.run("regen-status", "--run", run, "--json").out))

    def totals(self, run: str = "regen") -> dict[str, int]:
        return dict(self.status(run)["totals"])

    def end(self) -> None:
        for process in self.processes:
            process.kill()


class Ended:
    """What a finished command left."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}"


class Process:
    """A command in the background."""

    def __init__(self, words: Sequence[str], folder: Path, env: dict[str, str]) -> None:
        self.words = words
        self.log = folder / f"{words[0]}-{os.urandom(3).hex()}.log"
        with self.log.open("wb") as out:
            self.popen = subprocess.Popen(
                [str(BIN / words[0]), *words[1:]],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """kill -9 of this one process."""
        if self.running:
            self.popen.kill()
        self.popen.wait()

    def wait(self, within_s: float) -> int:
        try:
            return self.popen.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.words} still runs:\n{self.said[-3000:]}") from None


@contextmanager
def node(folder: Path, redis_url: str, **env: str) -> Iterator[Node]:
    found = Node(folder, redis_url, **env)
    try:
        yield found
    finally:
        found.end()


def write_prompts(
    path: Path, n: int, *, tools_last: int = 0, text: str = "question"
) -> list[dict[str, Any]]:
    """``n`` rows in ShareGPT's shape, the last ``tools_last`` of them with tool definitions."""
    rows = []
    for index in range(n):
        row: dict[str, Any] = {
            "id": f"row-{index}",
            "conversations": [
                {"from": "human", "value": f"{text} {index}"},
                {"from": "gpt", "value": "an old answer"},
            ],
        }
        if index >= n - tools_last:
            function = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
            row["tools"] = json.dumps([{"type": "function", "function": function}])
        rows.append(row)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return rows


def redis_of(node: Node) -> redis.Redis:
    """A client of the node's Redis."""
    return redis.Redis.from_url(node.redis_url)
