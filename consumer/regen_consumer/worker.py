"""The consumer as RQ sees it. Only translates RQ's hooks; the work itself is elsewhere.

RQ's code is blocking, so all of it runs on one helper thread with a connection of its own.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import redis
from rq.job import Job
from rq.queue import Queue
from rq.worker import BaseWorker

from regen_common import redisio

T = TypeVar("T")
STATES: Final = {
    "busy": "busy",
    "idle": "idle",
    "suspended": "suspended",
    "halted": "suspended",
    "backlog": "suspended",
}
"""Our states as the four that RQ knows."""


class RegenWorker(BaseWorker):
    """A worker with many executions at once, named uniquely per process."""

    def __init__(
        self,
        queues: list[str],
        *,
        name: str,
        connection: redis.Redis,
        ttl_s: int,
        on_command: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__(
            queues, name=name, connection=connection, worker_ttl=ttl_s, serializer="json"
        )
        self._ttl_s = ttl_s
        self._on_command = on_command

    def heartbeat(
        self, timeout: int | None = None, pipeline: redis.client.Pipeline | None = None
    ) -> None:
        """A dead consumer is gone from ``rq info`` after its TTL, not a minute later."""
        super().heartbeat(timeout or self._ttl_s, pipeline)

    def handle_payload(self, message: dict[str, Any]) -> None:
        """``rq`` commands: shutdown, stop-job, stop-execution, kill-horse."""
        self._on_command(json.loads(message["data"]))

    def execute_job(self, job: Job, queue: Queue) -> NoReturn:
        raise NotImplementedError("regen-consume runs jobs itself")

    def register_again(self) -> None:
        """After a pause longer than the TTL the worker's hash is gone: write it anew."""
        self.connection.hset(self.key, mapping=self.serialize())
        self.connection.sadd(self.redis_workers_keys, self.key)
        for queue in self.queues:
            self.connection.sadd(f"rq:workers:{queue.name}", self.key)


class RqSide:
    """The helper thread: birth, beats, states, registries, death."""

    def __init__(self, worker: RegenWorker) -> None:
        self.worker = worker
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rq")
        self._state = ""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run blocking code on the helper thread, with Redis' errors in our words."""

        def mapped() -> T:
            with redisio.mapped_errors():
                return function(*args)

        return await asyncio.get_running_loop().run_in_executor(self._thread, mapped)

    async def birth(self) -> None:
        await self.call(self.worker.bootstrap, "WARNING")

    async def beat(self, state: str) -> None:
        """Heartbeat, state, and RQ's own registry clean-up when it is due."""
        await self.call(self._beat, STATES.get(state, "started"))

    def _beat(self, state: str) -> None:
        worker = self.worker
        if not worker.connection.hexists(worker.key, "pid"):
            worker.register_again()
        worker.heartbeat()
        if state != self._state:
            worker.set_state(state)
            self._state = state
        if worker.should_run_maintenance_tasks:
            worker.run_maintenance_tasks()  # type: ignore[no-untyped-call]

    async def death(self) -> None:
        await self.call(self.worker.teardown)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
