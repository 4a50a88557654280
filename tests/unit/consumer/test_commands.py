from typing import Any

import pytest

from regen_common.queue.shapes import Claimed, Lease
from regen_consumer import commands
from regen_consumer.commands import Order
from regen_consumer.leases import Leases


@pytest.mark.parametrize(
    ("payload", "order"),
    [
        ({"command": "shutdown"}, Order(leave=True)),
        ({"command": "kill-horse"}, Order(give_back=True)),
        ({"command": "stop-job", "job_id": "regen-7"}, Order(stop=("e7",))),
        ({"command": "stop-job", "job_id": "regen-8"}, Order()),
        (
            {"command": "stop-execution", "job_id": "regen-7", "execution_id": "e7"},
            Order(stop=("e7",)),
        ),
        ({"command": "dance"}, Order()),
        ({}, Order()),
    ],
)
def test_what_rq_says(payload: dict[str, Any], order: Order) -> None:
    leases = Leases()
    leases.add(Claimed(Lease("regen-chat", 7, "e7"), 0, 0, 0))
    assert commands.read(payload, leases) == order
