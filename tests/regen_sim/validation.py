"""What SGLang refuses in a chat request, in its order: types, messages, tools, sampling values."""

import json
from typing import Any, Final

from regen_sim import refusals, response, sampling, typing_problems

_SCHEMA_TYPES: Final = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
)


def refuse(
    body: dict[str, Any], *, new: bool, context_length: int, strict_template: bool
) -> response.Response | None:
    """The first refusal of a chat request that is JSON, or None."""
    found = list(typing_problems.problems(body, new=new))
    if found:
        return refusals.invalid(found, refusals.chat_endpoint(new=new))
    message = _broken_rule(body, context_length) or _hidden_states(body, new=new)
    if message is not None:
        return refusals.bad_request(message)
    message = _untemplatable(body, strict=strict_template, new=new)
    if message is not None:
        return refusals.bad_request(message, "BadRequest")
    message = _bad_content(body, new=new) or sampling.refuse(_with_floats(body), new=new)
    return None if message is None else refusals.bad_request(message)


def _with_floats(body: dict[str, Any]) -> dict[str, Any]:
    """Chat has made floats of these values before it looks at them."""
    return body | {
        name: float(body[name]) for name in typing_problems.NUMBERS if body.get(name) is not None
    }


def _broken_rule(body: dict[str, Any], context_length: int) -> str | None:
    if not body["messages"]:
        return "Messages cannot be empty."
    model = body.get("model") or "default"
    if ":" in model:
        adapter = model.partition(":")[2]
        return (
            f"LoRA adapter '{adapter}' was requested, but LoRA is not enabled. Please launch the"
            " server with --enable-lora flag and preload adapters using --lora-paths or"
            " /load_lora_adapter endpoint."
        )
    wanted = sampling.tokens_max(body)
    return _bad_tools(body) or (
        f"max_completion_tokens is too large: {wanted}."
        f"This model supports at most {context_length} completion tokens."
        if wanted is not None and wanted > context_length
        else None
    )


def _hidden_states(body: dict[str, Any], *, new: bool) -> str | None:
    if not body.get("return_hidden_states"):
        return None
    if new:
        return (
            "The server is not configured to return hidden states. Please set"
            " `--return-hidden-states-mode last`, `--return-hidden-states-mode full`, or the legacy"
            " `--enable-return-hidden-states` flag."
        )
    return (
        "The server is not configured to return the hidden states. Please set"
        " `--enable-return-hidden-states` to enable this feature."
    )


def _bad_tools(body: dict[str, Any]) -> str | None:
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    if choice == "required" and not tools:
        return "Tools cannot be empty if tool choice is set to required."
    functions = [tool.get("function") or {} for tool in tools]
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        if all(function.get("name") != name for function in functions):
            return f"Tool '{name}' not found in tools list."
    for place, function in enumerate(functions):
        kind = (function.get("parameters") or {}).get("type", "object")
        if isinstance(kind, str) and kind not in _SCHEMA_TYPES:
            return refusals.BAD_SCHEMA.format(place=place, value=kind)
    return None


def _untemplatable(body: dict[str, Any], *, strict: bool, new: bool) -> str | None:
    """What the chat template, or the rendering before it, raises."""
    if body.get("n") == 0:
        return "range() arg 3 must not be zero"
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            if (error := _bad_arguments(call, new=new)) is not None:
                return error
    return _refused_by_qwen(body["messages"]) if strict else None


def _bad_arguments(call: dict[str, Any], *, new: bool) -> str | None:
    arguments = (call.get("function") or {}).get("arguments")
    if not isinstance(arguments, str):
        return None
    try:
        json.loads(arguments)
    except json.JSONDecodeError as error:
        if new:
            return "Assistant tool call function.arguments must be valid JSON."
        return f"unexpected character, expected a string key: line {error.lineno} column 2 (char 1)"
    return None


def _refused_by_qwen(messages: list[dict[str, Any]]) -> str | None:
    roles = [message["role"] for message in messages]
    if "developer" in roles:
        return "Unexpected message role."
    if "system" in roles[1:]:
        return refusals.SYSTEM_FIRST
    queries = [message["content"] for message in messages if message["role"] == "user"]
    if not any(not _is_tool_response(query) for query in queries):
        return "No user query found in messages."
    return None


def _is_tool_response(query: Any) -> bool:
    text = query.strip() if isinstance(query, str) else ""
    return text.startswith("<tool_response>") and text.endswith("</tool_response>")


def _bad_content(body: dict[str, Any], *, new: bool) -> str | None:
    if not new:
        return None
    for message in body["messages"]:
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if part.get("type") != "text":
                return (
                    "Model only supports text input; received unsupported content type"
                    f" '{part.get('type')}'."
                )
    return None
