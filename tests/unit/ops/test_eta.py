import pytest

from regen_ops.status import eta


def test_each_category_costs_what_its_own_answers_cost() -> None:
    chat = eta.work(left=100, answers=50, tokens=50 * 100, tokens_sq=50 * 100**2)
    tools = eta.work(left=10, answers=5, tokens=5 * 1000, tokens_sq=5 * 1000**2)
    out = eta.eta([chat, tools], tokens_per_s=100)
    assert out.low == out.mid == out.high == (100 * 100 + 10 * 1000) / 100


def test_spread_widens_the_range_around_the_middle() -> None:
    chat = eta.work(left=100, answers=50, tokens=5000, tokens_sq=5000 * 300)
    out = eta.eta([chat], tokens_per_s=10)
    assert out.low is not None
    assert out.mid is not None
    assert out.high is not None
    assert out.low < out.mid < out.high


def test_a_category_without_answers_is_taken_for_half_to_twice_the_others() -> None:
    chat = eta.work(left=0, answers=50, tokens=5000, tokens_sq=500_000)
    tools = eta.work(left=10, answers=0, tokens=0, tokens_sq=0)
    out = eta.eta([chat, tools], tokens_per_s=10)
    assert (out.low, out.mid, out.high) == (50, 100, 200)


@pytest.mark.parametrize(("answers", "rate"), [(0, 10.0), (5, None), (5, 0.0)])
def test_unknown_is_unknown(answers: int, rate: float | None) -> None:
    chat = eta.work(left=10, answers=answers, tokens=answers * 10, tokens_sq=answers * 100)
    assert eta.eta([chat], tokens_per_s=rate).mid is None


def test_nothing_left_takes_no_time() -> None:
    assert eta.eta([eta.work(left=0, answers=0, tokens=0, tokens_sq=0)], tokens_per_s=None).mid == 0
