"""Arbitrary JSON, and JSON that is nearly a conversation, through the whole of normalising."""

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from regen_producer import dump, inputs, normalise, raw, rejection, roles, rows

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
)

MESSAGE_KEYS = ["role", "from", "content", "value", "text", "type", "image_url", "tool_calls"]
TOOL_KEYS = ["function", "name", "parameters", "properties", "items", "required", "enum", "anyOf"]
WORDS = st.sampled_from([*MESSAGE_KEYS, *TOOL_KEYS])
NEARLY = st.recursive(
    SCALARS | st.sampled_from(["user", "gpt", "system", "object", "dict", "List[str]", "[]", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(sorted(roles.ROLES)), "content": ANY_TEXT | NEARLY}
)
ROW = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE | NEARLY, max_size=4)},
    optional={"tools": NEARLY, "functions": NEARLY, "system": NEARLY, "id": JSON, "more": JSON},
)


def check(value: Any) -> None:
    """Through normalising into the store's row and the dump's line."""
    found = normalise.normalise(value)
    row = rows.Builder(inputs.Choices()).build(0, "x:0", raw.RawRow(0, value))
    line = json.loads(dump.line(row), parse_constant=lambda word: 1 / 0)
    if isinstance(found, normalise.Rejected):
        assert found.error in rejection.CLASSES
        assert line["error"] == found.error
        assert (line["messages"], line["tools"], line["has_tools"]) == ([], None, False)
    else:
        assert line["messages"] == found.messages
        assert line["n_user_turns"] >= 1
        assert line["has_tools"] or line["tools"] is None
    if row.extra is not None:
        orjson.loads(row.extra)


@given(JSON)
def test_any_json_is_a_prompt_or_is_rejected(value: Any) -> None:
    check(value)


@given(ROW)
def test_anything_like_a_row_is_a_prompt_or_is_rejected(value: Any) -> None:
    check(value)


PLAIN = st.text(min_size=1).filter(str.strip)


@given(st.lists(st.tuples(st.sampled_from(["human", "gpt"]), PLAIN), min_size=1), PLAIN)
def test_user_and_system_texts_come_out_as_they_went_in(
    turns: list[tuple[str, str]], system: str
) -> None:
    spoken = [("system", system), ("human", "first"), *turns]
    row = {"conversations": [{"from": who, "value": text} for who, text in spoken]}
    found = normalise.normalise(row)
    assert isinstance(found, normalise.Normalised)
    expected = [system, "first", *(text for who, text in turns if who == "human")]
    assert [message["content"] for message in found.messages] == expected


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_deep_nesting_anywhere_is_survived() -> None:
    deep = nested(900)
    for row in (
        deep,
        {"messages": deep},
        {"messages": [{"role": deep, "content": "hi"}]},
        {"messages": [{"role": "user", "content": deep}]},
        {"messages": [{"role": "user", "content": "hi"}], "tools": deep},
        {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f", "x": deep}]},
        {"messages": [{"role": "user", "content": "hi"}], "tools": json.dumps(deep)},
        {"messages": [{"role": "user", "content": "hi"}], "id": deep, "more": deep},
    ):
        check(row)
