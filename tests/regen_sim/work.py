"""An accepted order, and the plan for its answer."""

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from regen_sim import faults, orders, plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Everything that the answer is made from."""

    order: orders.Order
    rid: str
    cached_tokens: int
    plan: plan.Plan
    chosen: list[faults.Fault]
    fault: faults.Fault | None  # the one of them that is not about time
    arrived_s: float = field(default_factory=time.time)

    @property
    def body(self) -> dict[str, Any]:
        """The request's own fields; for ``/generate`` its sampling parameters among them."""
        return self.order.body

    def has(self, name: str) -> bool:
        return self.fault is not None and self.fault.name == name


def new_rid() -> str:
    return uuid.uuid4().hex
