"""What ``rq`` sends to a worker, in our words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regen_common.run import keys
from regen_consumer.leases import Leases


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """``leave``: shut down; ``stop``: leases of prompts to stop; ``give_back``: all of them."""

    leave: bool = False
    stop: tuple[str, ...] = ()
    give_back: bool = False


def read(payload: Mapping[str, Any], leases: Leases) -> Order:
    """``shutdown``, ``stop-job``, ``stop-execution``, ``kill-horse``; others are ignored."""
    match payload.get("command"):
        case "shutdown":
            return Order(leave=True)
        case "kill-horse":
            return Order(give_back=True)
        case "stop-execution":
            return Order(stop=(str(payload.get("execution_id")),))
        case "stop-job":
            job = leases.find(keys.index_of(str(payload.get("job_id"))))
            return Order(stop=(job.lease.eid,) if job else ())
        case _:
            return Order()
