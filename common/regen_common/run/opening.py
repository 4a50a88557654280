"""An existing run, opened: client, keys, configuration, transitions."""

from dataclasses import dataclass

import redis

from regen_common import redisio
from regen_common.queue import executor
from regen_common.run import config, keys


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenRun:
    """What every command that works on a run begins with. ``config`` is as it was then."""

    client: redis.Redis
    keys: keys.Keys
    config: config.Config
    queue: executor.Queue


def open_run(url: str, run: str, *, allow_volatile: bool) -> OpenRun:
    """Connect, check the server, read the run.

    Raises :class:`regen_common.errors.RunNotFoundError`, or what the server's state asks for.
    """
    names = keys.Keys(run=run)
    client = redisio.connect(url)
    redisio.check_server(client, allow_volatile=allow_volatile)
    found = config.load(client, run)
    queue = executor.Queue(client, run=run, epoch=found.epoch)
    return OpenRun(client=client, keys=names, config=found, queue=queue)
