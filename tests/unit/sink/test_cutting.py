import pytest

from regen_common.queue.shapes import Entry
from regen_consumer.sink import cutting

LIMITS = cutting.Limits(records=3, bytes=100, age_s=60)


def entries(*sizes: int, at_s: float = 1000.0) -> list[Entry]:
    return [
        Entry(f"{int(at_s * 1000)}-{n}", n, 0, 0, b"x" * (size - 1)) for n, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "age_s", "flush", "taken"),
    [
        ((), 999, True, 0),
        ((10, 10), 0, False, 0),
        ((10, 10, 10), 0, False, 3),
        ((10, 10, 10, 10), 0, False, 3),
        ((60, 60), 0, False, 1),
        ((50, 50), 0, False, 0),
        ((50, 51), 0, False, 1),
        ((500,), 0, False, 1),
        ((500, 10), 0, False, 1),
        ((10,), 59.9, False, 0),
        ((10,), 60.1, False, 1),
        ((10, 10), 0, True, 2),
    ],
)
def test_how_much_is_cut(sizes: tuple[int, ...], age_s: float, flush: bool, taken: int) -> None:
    found = entries(*sizes)
    assert cutting.due(found, LIMITS, redis_time_s=1000 + age_s, flush=flush) == taken
