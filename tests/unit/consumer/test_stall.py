import pytest

from regen_consumer import stall


def watch(*signs: tuple[float, int | None, int, int]) -> stall.Watch:
    seen = stall.Watch()
    for at_s, tokens, answers, in_flight in signs:
        seen = stall.look(
            seen, stall.Sign(at_s=at_s, tokens=tokens, answers=answers, in_flight=in_flight)
        )
    return seen


@pytest.mark.parametrize(
    ("signs", "stuck"),
    [
        ([(0, 5, 0, 1), (9, 5, 0, 1)], False),
        ([(0, 5, 0, 1), (10, 5, 0, 1)], True),
        ([(0, 5, 0, 1), (9, 6, 0, 1), (18, 6, 0, 1)], False),
        ([(0, 5, 0, 1), (9, 5, 1, 1), (18, 5, 1, 1)], False),
        ([(0, 5, 0, 0), (99, 5, 0, 0)], False),
        ([(0, 5, 0, 0), (99, 5, 0, 1)], False),
        ([(0, 5, 0, 0), (99, 5, 0, 1), (109, 5, 0, 1)], True),
        # an engine that shows no counters is given twelve times as long
        ([(0, None, 0, 1), (119, None, 0, 1)], False),
        ([(0, None, 0, 1), (120, None, 0, 1)], True),
        # an answer of eleven minutes, with counters that move
        ([(t, t, 0, 1) for t in range(0, 660, 5)], False),
    ],
)
def test_stuck_is_no_progress_while_there_is_work(
    signs: list[tuple[float, int | None, int, int]], stuck: bool
) -> None:
    assert stall.stalled(watch(*signs), stall_s=10) is stuck
