from regen_consumer.rate import TokenRate


def test_unknown_before_the_first_answer() -> None:
    assert TokenRate().per_s(5) is None


def test_the_last_minute_counts() -> None:
    rate = TokenRate()
    for second in range(0, 120, 10):
        rate.add(second, 100)
    assert rate.per_s(119) == 600 / 60


def test_it_falls_to_zero_when_nothing_comes() -> None:
    rate = TokenRate()
    rate.add(0, 100)
    assert rate.per_s(61) == 0
