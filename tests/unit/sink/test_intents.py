import pytest

from regen_common.queue.shapes import Entry
from regen_consumer.sink import intents

INTENT = intents.Intent(
    name="0000000001000-000002-0123456789abcdef.jsonl.zst",
    first="0-0", last="1000-2", count=1, codec="zstd", to="/out", bytes=9, at=100.0, epoch="e",
)  # fmt: skip
FINE = {"still_open": True, "redis_time_s": 105.0, "aof_ok": True, "manifest_epoch": "e"}


def test_a_settled_intent_may_be_written() -> None:
    assert intents.hindrance(INTENT, **FINE) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"still_open": False}, "gone"),
        ({"manifest_epoch": "f"}, "epoch"),
        ({"aof_ok": False}, "aof"),
        ({"redis_time_s": 104.9}, "young"),
    ],
)
def test_what_keeps_an_intent_from_being_written(change: dict[str, object], why: str) -> None:
    assert intents.hindrance(INTENT, **(FINE | change)) == why  # type: ignore[arg-type]


def test_a_name_sorts_by_time_and_tells_content_and_codec() -> None:
    name = intents.object_name(
        [Entry("1000-2", 0, 0, 0, b"")], sha256="0123456789abcdef" * 4, codec="zstd"
    )
    assert name == INTENT.name
    assert INTENT.sha16 == "0123456789abcdef"
