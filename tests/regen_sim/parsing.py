"""What the server's own parsers make of the raw text: reasoning, and Qwen3-Coder's tool calls."""

import json
import re
from typing import Any, Final, NamedTuple

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_CALL: Final = "<tool_call>"
_FUNCTION: Final = re.compile(
    r"<tool_call>\s*<function=(?P<name>[^>\n]+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL
)
_PARAMETER: Final = re.compile(
    r"<parameter=(?P<name>[^>\n]+)>\n?(?P<value>.*?)(?:\n?</parameter>|\Z)", re.DOTALL
)


class Split(NamedTuple):
    reasoning: str
    content: str


class Call(NamedTuple):
    name: str
    arguments: str  # JSON


class Calls(NamedTuple):
    """The text around the calls, and the calls."""

    content: str
    calls: list[Call]


def split_reasoning(text: str, *, forced: bool, new: bool) -> Split:
    """Qwen3's detector. 0.5.11 strips white space, 0.5.23 keeps it."""
    if not forced and _OPEN not in text:
        return Split("", text)
    if new:
        before, found, after = text.removeprefix(_OPEN).partition(_CLOSE)
        return Split(before, after if found else "")
    before, found, after = text.replace(_OPEN, "").strip().partition(_CLOSE)
    return Split(before, after.strip() if found else "")


def split_calls(text: str, tools: Any, *, new: bool) -> Calls:
    """Qwen3-Coder's detector: what follows a call is dropped, a cut call looks like a whole one.

    0.5.23 drops a call with stray text among its parameters, and all text from the first tag on.
    """
    start = text.find(_CALL)
    if start < 0:
        return Calls(text, [])
    kinds = _kinds(tools)
    calls = [
        Call(found["name"].strip(), _arguments(found["body"], kinds.get(found["name"].strip(), {})))
        for found in _FUNCTION.finditer(text, start)
        if not (new and _PARAMETER.sub("", found["body"]).strip())
    ]
    return Calls(text if not calls and not new else text[:start], calls)


def _arguments(body: str, kinds: dict[str, str]) -> str:
    values = {
        found["name"]: _typed(found["value"], kinds.get(found["name"]))
        for found in _PARAMETER.finditer(body)
    }
    return json.dumps(values, ensure_ascii=False)


def _typed(value: str, kind: str | None) -> Any:
    if kind in {"integer", "number"}:
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value


def _kinds(tools: Any) -> dict[str, dict[str, str]]:
    """The JSON types of each function's parameters."""
    found: dict[str, dict[str, str]] = {}
    for tool in tools or ():
        function = tool.get("function") or {}
        properties = (function.get("parameters") or {}).get("properties") or {}
        found[str(function.get("name"))] = {
            name: what.get("type", "string") for name, what in properties.items()
        }
    return found
