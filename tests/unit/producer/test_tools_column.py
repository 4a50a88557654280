"""Tool definitions in a column: what is sent to the engine, and what is refused."""

import json
from typing import Any

import pytest

from regen_producer import normalise, rejection, tools

SCHEMA = {"type": "object", "properties": {"loaf": {"type": "string"}}, "required": ["loaf"]}
BAKE = {"name": "bake", "description": "Bake a loaf", "parameters": SCHEMA}
SENT = {"type": "function", "function": BAKE}


def bake(**changes: Any) -> dict[str, Any]:
    return {**BAKE, **changes}


def parameters_of(parameters: Any) -> Any:
    found = tools.of_column([bake(parameters=parameters)])
    assert found is not None
    return found[0]["function"].get("parameters")


ONE_TOOL = {
    "openai": [SENT],
    "bare": [BAKE],
    "flat with a type": [{"type": "function", **BAKE}],
    "anthropic": [{"name": "bake", "description": "Bake a loaf", "input_schema": SCHEMA}],
    "mcp": [{"name": "bake", "description": "Bake a loaf", "inputSchema": SCHEMA}],
    "anthropic, typed": [
        {"type": "custom", "name": "bake", "description": "Bake a loaf", "input_schema": SCHEMA}
    ],
    "a json string": json.dumps([BAKE]),
    "a json string of a json string": json.dumps(json.dumps([BAKE])),
    "a single object": SENT,
    "a single object as a string": json.dumps(BAKE),
    "strings in a list": [json.dumps(SENT)],
    "the function as a string": [{"type": "function", "function": json.dumps(BAKE)}],
    "parameters as a string": [bake(parameters=json.dumps(SCHEMA))],
    "padded with null": [
        {"type": "function", "function": {**BAKE, "strict": None, "returns": None}, "id": None},
        None,
    ],
    "parameters padded with null": [
        bake(
            parameters={
                **SCHEMA,
                "properties": {"loaf": {"type": "string", "enum": None}, "x": None},
            }
        )
    ],
    "padded with NaN": [bake(strict=float("nan"))],
}


@pytest.mark.parametrize("column", ONE_TOOL.values(), ids=ONE_TOOL.keys())
def test_every_way_to_write_a_tool_is_sent_as_openai_takes_it(column: Any) -> None:
    assert tools.of_column(column) == [SENT]


@pytest.mark.parametrize("column", [None, "", "  ", "null", "[]", "{}", '""', [], {}, [None]])
def test_a_column_without_tools_offers_none(column: Any) -> None:
    assert tools.of_column(column) is None


def test_two_tools_of_one_name_are_both_kept() -> None:
    assert tools.of_column([BAKE, BAKE]) == [SENT, SENT]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({}, {}),
        ("", {}),
        ([], {}),
        ({"type": "dict"}, {"type": "object"}),
        ({"type": "OBJECT"}, {"type": "object"}),
        ({"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": False}),
        # a map without its outer object
        ({"loaf": {"type": "str"}}, {"type": "object", "properties": {"loaf": {"type": "string"}}}),
        ({"loaf": "string"}, {"type": "object", "properties": {"loaf": {"type": "string"}}}),
        ({"type": {"type": "int"}}, {"type": "object", "properties": {"type": {"type": "integer"}}}),
    ],
)  # fmt: skip
def test_parameters_become_a_schema(written: Any, meant: Any) -> None:
    assert parameters_of(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"type": "float"}, {"type": "number"}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "bool", "default": False}, {"type": "boolean", "default": False}),
        ({"type": "any", "description": "d"}, {"description": "d"}),
        ({"type": "tuple", "items": {"type": "float"}}, {"type": "array", "items": {"type": "number"}}),
        ({"type": "List[str]"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "list[dict[str, int]]"}, {"type": "array"}),
        ({"type": "Dict[str, Any]"}, {"type": "object"}),
        ({"type": "str, optional"}, {"type": "string"}),
        ({"type": "Optional[int]"}, {"type": "integer"}),
        ({"type": "Union[str, int]"}, {}),
        ({"type": ["str", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["int", "any"]}, {}),
        ({"type": "enum", "enum": ["a"]}, {"enum": ["a"]}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"items": [{"type": "int"}]}, {"prefixItems": [{"type": "integer"}]}),
        ({"anyOf": [{"type": "str"}, True]}, {"anyOf": [{"type": "string"}, True]}),
        ({"type": "dict", "properties": {"type": {"type": "any"}}}, {"type": "object", "properties": {"type": {}}}),
        ({"maximum": float("inf")}, {}),
    ],
)  # fmt: skip
def test_types_are_repaired_where_the_meaning_is_plain(written: Any, meant: Any) -> None:
    wrapped = {"type": "object", "properties": {"loaf": written}}
    assert parameters_of(wrapped) == {"type": "object", "properties": {"loaf": meant}}


def test_required_marks_of_single_properties_are_gathered() -> None:
    written = {
        "type": "object",
        "properties": {"a": {"type": "str", "required": True}, "b": {"required": False}},
    }
    assert parameters_of(written) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {}},
        "required": ["a"],
    }


def test_a_good_schema_is_sent_as_it_was_written_key_by_key() -> None:
    written = {
        "$schema": "s",
        "required": ["a"],
        "type": "object",
        "properties": {"a": {"description": "d", "type": ["string", "null"], "x-unit": "kg"}},
    }
    assert json.dumps(parameters_of(written)) == json.dumps(written)


REFUSED = {
    "python's repr": "[{'name': 'bake'}]",
    "prose": "bake(loaf)",
    "a number": 3,
    "a boolean": False,
    "names as keys": {"bake": {"parameters": SCHEMA}},
    "a list of names": ["bake"],
    "a tool of null parameters and no name": [{"description": "d"}],
    "a blank name": [bake(name=" ")],
    "not a function": [{"type": "web_search"}],
    "a function of text": [{"type": "function", "function": "bake"}],
    "a description of a list": [bake(description=["d"])],
    "strict is a word": [bake(strict="yes")],
    "parameters of text": [bake(parameters="a loaf")],
    "parameters of a list": [bake(parameters=[{"name": "loaf"}])],
    "parameters twice": [bake(input_schema=SCHEMA)],
    "an unknown type": [bake(parameters={"type": "object", "properties": {"a": {"type": "loaf"}}})],
    "a type of null in a list": [bake(parameters={"type": [None]})],
    "properties of a list": [bake(parameters={"type": "object", "properties": []})],
    "required of a word": [bake(parameters={"type": "object", "required": "a"})],
    "enum of a word": [bake(parameters={"type": "object", "properties": {"a": {"enum": "x"}}})],
    "a property of a number": [bake(parameters={"type": "object", "properties": {"a": 4}})],
    "a number beyond 64 bits": [bake(parameters={"type": "object", "default": 1 << 70})],
}


@pytest.mark.parametrize("column", REFUSED.values(), ids=REFUSED.keys())
def test_definitions_that_an_engine_would_refuse_are_bad_tools(column: Any) -> None:
    with pytest.raises(rejection.RejectedRowError) as caught:
        tools.of_column(column)
    assert caught.value.error == rejection.BAD_TOOLS


def test_a_lone_surrogate_in_a_definition_has_its_own_class() -> None:
    with pytest.raises(rejection.RejectedRowError) as caught:
        tools.of_column([bake(description="\ud83d")])
    assert caught.value.error == rejection.LONE_SURROGATE


def test_the_complaint_names_the_tool() -> None:
    with pytest.raises(rejection.RejectedRowError, match="bake: no JSON type: 'loaf'"):
        tools.of_column([bake(parameters={"type": "loaf"})])


USER = {"role": "user", "content": "A rye, please."}

ROWS = {
    "tools": ({"messages": [USER], "tools": [BAKE]}, {}),
    "functions": ({"messages": [USER], "functions": [BAKE], "function_call": "auto"}, {"function_call": "auto"}),
    "empty tools before functions": ({"messages": [USER], "tools": "[]", "functions": [BAKE]}, {"tools": "[]"}),
    "in the user's message": ({"messages": [{**USER, "tools": json.dumps([BAKE])}]}, {}),
    "in the system's message": (
        {"messages": [{"role": "system", "content": None, "functions": [BAKE]}, USER]}, {}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("row", "extra"), ROWS.values(), ids=ROWS.keys())
def test_definitions_are_found_wherever_a_row_may_hold_them(
    row: dict[str, Any], extra: dict[str, Any]
) -> None:
    found = normalise.normalise(row)
    assert isinstance(found, normalise.Normalised)
    assert (found.tools, found.has_tools, found.messages) == ([SENT], True, [USER])
    assert found.extra == extra


def test_a_row_with_bad_tools_is_rejected_rather_than_asked_without_them() -> None:
    found = normalise.normalise({"messages": [USER], "tools": "{"})
    assert isinstance(found, normalise.Rejected)
    assert found.error == rejection.BAD_TOOLS
