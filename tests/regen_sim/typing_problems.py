"""What FastAPI's validation finds in a chat request before SGLang sees it."""

from collections.abc import Iterator
from typing import Any, Final

_OLD_ROLES: Final = "'system', 'developer', 'assistant', 'tool', or 'function'"
_NEW_ROLES: Final = (
    "'system', 'assistant', 'tool', 'function', 'developer', 'latest_reminder', 'root'"
)
_ROLES: Final = frozenset(
    {"system", "developer", "assistant", "tool", "function", "latest_reminder", "root"}
)
_PART: Final = "ChatCompletionMessageContent"
_OLD_PARTS: Final = (
    f"list[union[{_PART}TextPart,{_PART}ImagePart,{_PART}VideoPart,{_PART}AudioPart,"
    f"{_PART}ToolReferenceBlock]]"
)
_NEW_PARTS: Final = (
    f"list[union[{_PART}TextPart,function-after[validate_payload(), {_PART}ThinkingPart],"
    f"{_PART}ImagePart,{_PART}VideoPart,function-after[_to_audio_url_part(), "
    f"union[{_PART}AudioURLPart,{_PART}AudioInlinePart]],{_PART}ToolReferenceBlock]]"
)
NUMBERS: Final = (
    "temperature",
    "top_p",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)


def problems(body: dict[str, Any], *, new: bool) -> Iterator[dict[str, Any]]:
    """One mapping per problem, as the error message shows them."""
    messages = body.get("messages")
    if "messages" not in body:
        tool_choice = {"tool_choice": "auto" if body.get("tools") else "none"}
        yield _problem("missing", ("messages",), "Field required", {**body, **tool_choice})
    elif not isinstance(messages, list):
        yield _problem("list_type", ("messages",), "Input should be a valid list", messages)
    else:
        for place, message in enumerate(messages):
            if not _is_plain(message):
                yield from _message_problems(place, message, new=new)
    yield from _field_problems(body)


def _field_problems(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    number = "Input should be a valid number, unable to parse string as a number"
    for name in NUMBERS:
        if isinstance(body.get(name), str):
            yield _problem("float_parsing", (name,), number, body[name])
    kwargs = body.get("chat_template_kwargs")
    if kwargs is not None and not isinstance(kwargs, dict):
        where = ("chat_template_kwargs",)
        yield _problem("dict_type", where, "Input should be a valid dictionary", kwargs)
    integer = "Input should be a valid integer, unable to parse string as an integer"
    for place, token in enumerate(body.get("stop_token_ids") or ()):
        if isinstance(token, str):
            yield _problem("int_parsing", ("stop_token_ids", place), integer, token)


def _is_plain(message: Any) -> bool:
    """Nothing to say about this message. Kept quick: all messages of all requests come by."""
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    if message.get("role") == "user":
        return isinstance(content, str | list)
    return message.get("role") in _ROLES and (content is None or isinstance(content, str | list))


def _message_problems(place: int, message: Any, *, new: bool) -> Iterator[dict[str, Any]]:
    if not isinstance(message, dict):
        message = {}
    generic, user, parts = _names(new=new)
    role, where = message.get("role"), ("messages", place)
    if role not in _ROLES:
        roles = f"'role' must be one of {_NEW_ROLES if new else _OLD_ROLES} (case-insensitive)."
        problem = _problem("value_error", (*where, generic, "role"), f"Value error, {roles}", role)
        yield problem | {"ctx": {"error": ValueError(roles)}}
    content = message.get("content")
    odd = content is not None and not isinstance(content, str | list)
    if odd:
        yield from _content_problems((*where, generic, "content"), content, parts)
    if role != "user":
        literal = _problem("literal_error", (*where, user, "role"), "Input should be 'user'", role)
        yield literal | {"ctx": {"expected": "'user'"}}
    elif "content" not in message:
        yield _problem("missing", (*where, user, "content"), "Field required", message)
    elif content is None or odd:
        yield from _content_problems((*where, user, "content"), content, parts)


def _names(*, new: bool) -> tuple[str, str, str]:
    names = ("ChatCompletionMessageGenericParam", "ChatCompletionMessageUserParam")
    if not new:
        return (*names, _OLD_PARTS)
    generic, user = (f"function-after[validate_thinking_parts_role(), {name}]" for name in names)
    return generic, user, _NEW_PARTS


def _content_problems(where: tuple[Any, ...], content: Any, parts: str) -> Iterator[dict[str, Any]]:
    yield _problem("string_type", (*where, "str"), "Input should be a valid string", content)
    yield _problem("list_type", (*where, parts), "Input should be a valid list", content)


def _problem(kind: str, where: tuple[Any, ...], message: str, found: Any) -> dict[str, Any]:
    return {"type": kind, "loc": ("body", *where), "msg": message, "input": found}
