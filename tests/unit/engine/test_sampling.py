"""Sampling settings and where each comes from."""

import pytest

from regen_consumer.engine import sampling

CARDS = [
    ("Qwen3.6-27B", True, (1.0, 0.95, 20, 0.0, 0.0, 1.0)),
    ("/dev/shm/Qwen3.6-27B", False, (0.7, 0.8, 20, 0.0, 1.5, 1.0)),
    ("Qwen/Qwen3.5-35B-A3B", True, (1.0, 0.95, 20, 0.0, 1.5, 1.0)),
    ("qwen3.5-9b", False, (0.7, 0.8, 20, 0.0, 1.5, 1.0)),
    ("Qwen3-8B", True, (0.6, 0.95, 20, 0.0, 0.0, 1.0)),
    ("Qwen3-30B-A3B-Instruct-2507", False, (0.7, 0.8, 20, 0.0, 0.0, 1.0)),
    ("Qwen3-Coder-30B-A3B-Instruct", False, (0.7, 0.8, 20, 0.0, 0.0, 1.05)),
]


def resolve(family=None, *, thinking=False, overrides=None, defaults=None, **more):
    return sampling.resolve(
        family, thinking=thinking, overrides=overrides or {}, server_defaults=defaults or {}, **more
    )


@pytest.mark.parametrize(("name", "thinking", "card"), CARDS)
def test_a_known_family_gets_what_its_card_says(name, thinking, card):
    found = resolve(sampling.family_of([name]), thinking=thinking)
    assert tuple(found.values[key] for key in sampling.NAMES) == card


def test_the_path_tells_the_family_where_the_served_name_does_not():
    assert sampling.family_of(["tiny", "/models/Qwen3.6-27B-FP8"]).name == "Qwen3.6"
    assert sampling.family_of(["tiny", None]) is None


def test_every_value_says_where_it_came_from():
    family = sampling.family_of(["Qwen3.6-27B"])
    found = resolve(family, thinking=True, overrides={"temperature": 0.3}, defaults={"top_p": 0.1})
    assert found.values["temperature"] == 0.3
    assert found.sources["temperature"] == "set"
    assert found.sources["top_p"] == "Qwen3.6 thinking"
    assert found.values.keys() == found.sources.keys()


def test_an_unknown_model_gets_its_server_s_defaults_and_else_its_own_distribution():
    found = resolve(defaults={"temperature": 0.8, "top_k": 40})
    assert found.values == {
        "temperature": 0.8,
        "top_p": 1.0,
        "top_k": 40,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "repetition_penalty": 1.0,
    }
    assert found.sources["top_k"] == "server"
    assert found.sources["top_p"] == "neutral"


def test_nothing_is_claimed_that_the_server_would_not_take():
    found = resolve(overrides={"min_p": 0.1}, takes=("temperature", "top_p"))
    assert found.values == {"temperature": 1.0, "top_p": 1.0}


def test_the_frequency_penalty_is_set_only_where_somebody_names_it():
    assert "frequency_penalty" not in resolve().values
    assert resolve(overrides={"frequency_penalty": 0.5}).values["frequency_penalty"] == 0.5


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (None, {}),
        ({"do_sample": True, "temperature": "hot", "top_p": None, "top_k": True}, {}),
        ({"temperature": float("nan")}, {}),
        ({"repeat_penalty": 1.1, "temperature": 1}, {"repetition_penalty": 1.1, "temperature": 1}),
        ({"top_p": 0.949999988079071}, {"top_p": 0.95}),
    ],
)
def test_only_usable_numbers_of_ours_are_taken_from_defaults(given, known):
    assert sampling.known(given) == known
