"""What a consumer says of itself and its engine, for the status: a hash that expires."""

from collections.abc import Mapping
from typing import Any, Final

import redis

from regen_common import redisio
from regen_common.run import keys

GPUS_MAX: Final = 1_024
FORGET_AFTER_S: Final = 24 * 3600.0


def fields(values: Mapping[str, Any]) -> dict[str, str]:
    """Hash fields; unknown figures are empty."""
    return {name: "" if value is None else str(value) for name, value in values.items()}


class GpuReport:
    """One consumer's entry in ``{p}:gpus`` and ``{p}:gpu:{host}:{n}``."""

    def __init__(
        self, client: redis.Redis, names: keys.Keys, *, host: str, gpu: int, ttl_s: int
    ) -> None:
        self._client = client
        self._names = names
        self._host = host
        self._gpu = gpu
        self._ttl_s = ttl_s

    def publish(self, values: Mapping[str, Any]) -> None:
        """Replace what was said before."""
        key = self._names.gpu(self._host, self._gpu)
        at_s = redisio.time_s(self._client)
        with redisio.mapped_errors():
            pipe: Any = self._client.pipeline(transaction=True)
            pipe.hset(key, mapping=fields({"host": self._host, "gpu": self._gpu, **values}))
            pipe.expire(key, self._ttl_s)
            pipe.zadd(self._names.gpus, {f"{self._host}:{self._gpu}": at_s})
            pipe.zremrangebyscore(self._names.gpus, "-inf", at_s - FORGET_AFTER_S)
            pipe.zremrangebyrank(self._names.gpus, 0, -GPUS_MAX - 1)
            pipe.execute()
