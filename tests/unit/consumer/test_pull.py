import random
from collections import Counter

from regen_consumer import pull


def test_queues_are_first_in_proportion_to_their_weight() -> None:
    rng = random.Random(1)
    first = Counter(pull.order({"tools": 1, "chat": 3}, rng)[0] for _ in range(20_000))
    assert 0.73 < first["chat"] / first.total() < 0.77


def test_weights_follow_what_is_left_unless_chosen() -> None:
    assert pull.weights({"tools": 1, "chat": 3}, None) == {"tools": 0.25, "chat": 0.75}
    assert pull.weights({"tools": 1, "chat": 3}, {"tools": 2, "chat": 1}) == {"tools": 2, "chat": 1}


def test_a_category_that_looks_finished_is_still_asked() -> None:
    assert pull.weights({"tools": 0, "chat": 5}, None)["tools"] > 0
    assert sorted(pull.order(pull.weights({"tools": 0, "chat": 0}, None), random.Random(0))) == [
        "chat",
        "tools",
    ]
