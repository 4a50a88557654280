"""A proxy in front of a store for tests, which answers as a store in trouble does.

``with Microburst(store) as proxy: proxy.set_rules({"operation": "PutObject", ...})``. A rule is
described in microburst's own manual (``probability``, ``times``, ``error``, ``latency``, ``reset``,
``response`` ...). Requests are signed anew on their way, with the store's own key.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from servers.child import Child
from servers.ports import free_ports
from servers.weed import Weed


class Microburst:
    """Rules can be changed at any time; without any it only passes on."""

    def __init__(self, store: Weed) -> None:
        self._store = store
        self._folder = Path(tempfile.mkdtemp(prefix="microburst-"))
        (self._port,) = free_ports(1)
        self._child: Child | None = None

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def env(self) -> dict[str, str]:
        """What a command needs in its environment to use the store through this proxy."""
        return self._store.env() | {"AWS_ENDPOINT_URL_S3": self.endpoint_url}

    def set_rules(self, *rules: dict[str, Any]) -> None:
        """These and no others; ``service`` is S3. What fired before is forgotten."""
        body = [{"service": "s3", **rule} for rule in rules]
        self._ask("POST", "rules", body)
        self._ask("DELETE", "fired")

    def fired(self) -> list[dict[str, Any]]:
        """What happened to which request since the rules were set."""
        events: list[dict[str, Any]] = self._ask("GET", "fired")
        return events

    def start(self) -> Self:
        command = [sys.executable, "-m", "microburst", "--host", "127.0.0.1", "--resign"]
        command += ["--port", str(self._port), "--upstream", self._store.endpoint_url]
        environment = dict(os.environ) | self._store.env()
        self._child = Child(command, log=self._folder / "log", env=environment)
        self._child.wait_until(self._answers)
        # it reads botocore's models at its first request, which takes seconds
        with contextlib.closing(self._store.client(self.endpoint_url)) as client:
            client.list_buckets()
        return self

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _ask(self, method: str, what: str, body: Any = None) -> Any:
        url = f"{self.endpoint_url}/_microburst/{what}"
        answer = httpx.request(method, url, json=body, trust_env=False)
        answer.raise_for_status()
        return answer.json()

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            self._ask("GET", "health")
            return True
        return False
