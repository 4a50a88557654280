"""Tool definitions in a column, as the list that the OpenAI API takes."""

import json
import math
from typing import Any, Final, NoReturn

import orjson

from regen_producer import conversation, exact, rejection, tool_schema

COLUMNS: Final = ("tools", "functions")
DEPTH_MAX: Final = 80

_ENCODED_MAX: Final = 3
_PARAMETERS: Final = ("parameters", "input_schema", "inputSchema")


def of_column(value: Any) -> list[dict[str, Any]] | None:
    """The definitions that a column holds; None where it holds none.

    Raises :class:`rejection.RejectedRowError` (``bad_tools``, ``lone_surrogate``).
    """
    if value is None:
        return None
    value = _decoded(value, "the column")
    if value is None or value in ("", [], {}):
        return None
    if isinstance(value, dict):
        if not value.keys() & {"name", "function"}:
            _refuse("an object with neither name nor function; tools are a list")
        value = [value]
    if not isinstance(value, list):
        _refuse(f"the column holds {conversation.type_name(value)}, not a list")
    tools = [_tool(item) for item in value if item is not None]
    if not tools:
        return None
    _check_writable(tools)
    return tools


def _decoded(value: Any, what: str) -> Any:
    """The value out of its JSON strings, without the nulls that columns are padded with."""
    for _ in range(_ENCODED_MAX):
        if not isinstance(value, str) or not value.strip():
            break
        try:
            value = exact.parse(value)
        except ValueError as cause:
            raise rejection.RejectedRowError(
                rejection.BAD_TOOLS, f"{what} is no JSON: {exact.complaint(cause)}"
            ) from cause
    if isinstance(value, str):
        value = value.strip()
    return _without_nulls(value, 0)


def _without_nulls(value: Any, depth: int) -> Any:
    """Objects without the keys that are null: Arrow gives every tool all keys of its siblings,
    pandas writes NaN there. A null in a list, as in an enum, is a value and stays."""
    if depth > DEPTH_MAX:
        _refuse("nested too deeply")
    if isinstance(value, dict):
        return {
            key: _without_nulls(item, depth + 1)
            for key, item in value.items()
            if not _is_null(item)
        }
    if isinstance(value, list):
        return [_without_nulls(item, depth + 1) for item in value]
    return value


def _is_null(value: Any) -> bool:
    # an infinite bound is none either, and JSON has no word for it
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _tool(item: Any) -> dict[str, Any]:
    """``{"type": "function", "function": {...}}`` of any of the ways to write a tool."""
    item = _decoded(item, "a tool") if isinstance(item, str) else item
    if not isinstance(item, dict):
        _refuse(f"a tool is {conversation.type_name(item)}, not an object")
    if "function" in item:
        function = _decoded(item["function"], "a function")
        if not isinstance(function, dict):
            _refuse(f"a function is {conversation.type_name(function)}, not an object")
        _check_kind(item)
    else:
        function = {key: value for key, value in item.items() if key != "type"}
        if not any(name in item for name in _PARAMETERS):
            _check_kind(item)
    return {"type": "function", "function": _function(function)}


def _check_kind(item: dict[str, Any]) -> None:
    if item.get("type", "function") != "function":
        _refuse(f"a tool of type {item['type']!r}, only functions can be offered")


def _function(function: dict[str, Any]) -> dict[str, Any]:
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        _refuse("a tool without a name")
    out: dict[str, Any] = {}
    for key, value in function.items():
        if key in _PARAMETERS:
            _set_parameters(out, value, str(name))
        else:
            out[key] = value
    if not isinstance(out.get("description", ""), str):
        _refuse(f"the description of {name} is no text")
    if not isinstance(out.get("strict", False), bool):
        _refuse(f"strict of {name} is neither true nor false")
    return out


def _set_parameters(out: dict[str, Any], value: Any, name: str) -> None:
    value = _decoded(value, f"parameters of {name}") if isinstance(value, str) else value
    if value in ("", []):  # how PHP, and an empty cell, write no parameters
        value = {}
    if not isinstance(value, dict):
        _refuse(f"parameters of {name} are {conversation.type_name(value)}, not an object")
    if "parameters" in out:
        _refuse(f"{name} has its parameters twice")
    try:
        out["parameters"] = tool_schema.of_parameters(value)
    except rejection.RejectedRowError as why:
        _refuse(f"{name}: {why.detail}")


def _check_writable(tools: list[dict[str, Any]]) -> None:
    try:
        orjson.dumps(tools)
        return
    except TypeError:
        text = json.dumps(tools, ensure_ascii=False)
    if not exact.is_writable(text):
        raise rejection.RejectedRowError(rejection.LONE_SURROGATE, "in a tool definition")
    _refuse("a number beyond 64 bits in a tool definition")


def _refuse(detail: str) -> NoReturn:
    raise rejection.RejectedRowError(rejection.BAD_TOOLS, detail)
