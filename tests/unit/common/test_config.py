from typing import Any

import pytest

from regen_common import errors
from regen_common.run import config


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("max_tokens", 4096, 4096),
        ("thinking", True, "on"),
        ("thinking", "auto", "auto"),
        ("halt_on", "off", None),
        ("halt_on", {"rate": 0.5}, config.HALT_ON_DEFAULT | {"rate": 0.5}),
        ("weights", "auto", None),
        ("weights", {"tools": 1, "chat": 3}, {"tools": 1, "chat": 3}),
        ("sampling", {"temperature": 0.6, "top_k": 20}, {"temperature": 0.6, "top_k": 20}),
        ("destination", None, None),
    ],
)
def test_accepted(name: str, value: Any, stored: Any) -> None:
    assert config.checked(name, value) == stored


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_token", 1),
        ("max_tokens", 0),
        ("max_tokens", "many"),
        ("max_tokens", True),
        ("thinking", "maybe"),
        ("halt_on", {"rate": 0}),
        ("halt_on", {"rat": 0.5}),
        ("halt_on", {"labels": ["bad"]}),
        ("halt_on", {"min_answers": 600}),
        ("weights", {"tools": 1}),
        ("weights", {"tools": 0, "chat": 1}),
        ("sampling", {"temprature": 1}),
        ("sampling", {"temperature": "hot"}),
        ("store", ""),
    ],
)
def test_refused_in_one_line_that_names_the_key(name: str, value: Any) -> None:
    with pytest.raises(errors.UsageError, match=name) as caught:
        config.checked(name, value)
    assert "\n" not in str(caught.value)


def test_defaults_are_values_that_would_be_accepted() -> None:
    for name, value in config.DEFAULTS.items():
        assert config.checked(name, value) == value
