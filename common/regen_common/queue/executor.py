"""Runs transitions against Redis, blocking or not, and says in our words what went wrong.

redis-py repeats a call whose reply was lost; every transition is safe against that, but a repeated
claim leases other jobs and leaves the first ones to the reaper: claims are not repeated.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import orjson
import redis
import redis.asyncio
from redis.commands.core import AsyncScript, Script

from regen_common import errors, redisio
from regen_common.queue import scripts
from regen_common.queue.transitions import Call

T = TypeVar("T")
NOT_REPEATED: Final = frozenset({"claim"})


def _arguments(run: str, epoch: str | None, call: Call[Any]) -> list[bytes]:
    head = orjson.dumps({"run": run, "epoch": epoch, **call.args})
    return [head, *call.bodies]


def _read(run: str, call: Call[T], reply: list[Any]) -> T:
    if reply[0] == b"epoch":
        raise errors.WrongEpochError(
            f"run {run!r} was rebuilt since this process began; start it again"
        )
    if reply[0] == b"norun":
        raise errors.RunNotFoundError(
            f"no run {run!r} in this Redis; regen-produce makes one (is --redis right?)"
        )
    return call.read(reply)


class Queue:
    """Transitions of one run over a blocking client."""

    def __init__(
        self,
        client: redis.Redis,
        *,
        run: str,
        epoch: str | None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self.run = run
        self.epoch = epoch
        self._scripts: dict[str, Script] = {
            name: client.register_script((sources or {}).get(name) or scripts.source(name))
            for name in scripts.TRANSITIONS
        }

    def execute(self, call: Call[T]) -> T:
        """Run one transition. Raises what :mod:`regen_common.errors` has for Redis and epochs."""
        with redisio.mapped_errors():
            reply = self._scripts[call.script](args=_arguments(self.run, self.epoch, call))
        return _read(self.run, call, reply)


class AsyncQueue:
    """Transitions of one run over an asyncio client, and one without retries for claims."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        *,
        once: redis.asyncio.Redis,
        run: str,
        epoch: str,
    ) -> None:
        self.run = run
        self.epoch = epoch
        self._scripts: dict[str, AsyncScript] = {
            name: (once if name in NOT_REPEATED else client).register_script(scripts.source(name))
            for name in scripts.TRANSITIONS
        }

    async def execute(self, call: Call[T]) -> T:
        """Run one transition. Never cancel a task that waits in here: redis-py may hang."""
        with redisio.mapped_errors():
            reply = await self._scripts[call.script](args=_arguments(self.run, self.epoch, call))
        return _read(self.run, call, reply)
