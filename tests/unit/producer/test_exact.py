"""JSON in and out without a changed value."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_producer import exact, rejection


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"id": 18446744073709551615}', {"id": 2**64 - 1}),
        (b'{"id": 18446744073709551616}', {"id": 2**64}),
        (b'{"id": [{"x": 36893488147419103233}]}', {"id": [{"x": 36893488147419103233}]}),
        (b'{"id": -9223372036854775809}', {"id": -(2**63) - 1}),
        (b'{"s": "cut \\ud83d"}', {"s": "cut \ud83d"}),
        (b'{"s": "\\ud83d\\ude80"}', {"s": "\U0001f680"}),
        (b'{"x": Infinity}', {"x": float("inf")}),
        (b'{"x": 1e999}', {"x": float("inf")}),
        (b'{"x": 1e300}', {"x": 1e300}),
        ('{"s": "a\u2028b"}'.encode(), {"s": "a\u2028b"}),
        (b' {"s": "http:\\/\\/x"} \r', {"s": "http://x"}),
    ],
)
def test_values_are_read_exactly(raw: bytes, value: Any) -> None:
    assert exact.decode(raw) == value


def test_nan_is_read() -> None:
    assert str(exact.decode(b"[NaN]")) == "[nan]"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"{'a': 1}", "invalid_json"),
        (b'{"a": 1}{"a": 2}', "invalid_json"),
        (b'{"a": "tab\there"}', "invalid_json"),
        (b'{"a": "no end', "invalid_json"),
        (b'{"a": 1,}', "invalid_json"),
        (b"[" * 5_000 + b"]" * 5_000, "invalid_json"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "invalid_json"),
        (b'{"a": "\xff"}', "invalid_utf8"),
        (b'{"a": "\xed\xa0\xbd"}', "invalid_utf8"),
        ('{"a": 1}'.encode("utf-16"), "invalid_utf8"),
    ],
)
def test_what_is_no_json_is_refused_with_its_class(raw: bytes, error: str) -> None:
    with pytest.raises(rejection.RejectedRowError) as caught:
        exact.decode(raw)
    assert caught.value.error == error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_reading_agrees_with_the_standard_library(value: Any) -> None:
    text = json.dumps(value)
    expected = json.loads(text)
    assert exact.decode(text.encode()) == expected
    assert exact.parse(text) == expected


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": 2**64}, b'{"a":"18446744073709551616"}'),
        ([float("nan"), float("-inf"), 0.5], b"[null,null,0.5]"),
        ({"a\ud83d": "\udc00b"}, b'{"a\\\\ud83d":"\\\\udc00b"}'),
        ([True, None, -1], b"[true,null,-1]"),
    ],
)
def test_what_strict_json_cannot_hold_is_written_readably(value: Any, written: bytes) -> None:
    assert exact.dumps(value) == written


def test_nesting_without_end_is_written_to_a_bound() -> None:
    value: Any = "x"
    for _ in range(900):
        value = [value]
    assert exact.dumps(value).startswith(b"[[[[")
