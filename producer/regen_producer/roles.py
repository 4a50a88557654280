"""Who speaks in a turn: the names that datasets use, and what they mean here.

A name that is not in the table is reported, never guessed: a wrong guess puts a narrator's words
into the user's mouth, or drops them.
"""

from typing import Any, Final, Literal

from regen_producer import rejection

Role = Literal["system", "user", "assistant", "tool_call", "tool"]

_NAMES: Final[dict[Role, str]] = {
    "system": "system developer",
    "user": "user human prompter",
    "assistant": "assistant gpt chatgpt bing bard bot ai model claude gemini llama",
    # what the model asked of a tool
    "tool_call": "tool_call tool_calls function_call functioncall tool_caller tool_use",
    # what a tool answered
    "tool": (
        "tool function observation ipython environment tool_response tool_result tool_results "
        "tool_output function_response function_result function_output"
    ),
}
ROLES: Final[dict[str, Role]] = {
    name: role for role, names in _NAMES.items() for name in names.split()
}
KEYS: Final = ("role", "from")


def role_of(message: dict[str, Any]) -> Role:
    """The message's role, by its ``role`` or ``from``; a null in one does not hide the other.

    Raises :class:`rejection.RejectedRowError` (``missing_role_key``, ``unknown_role``,
    ``bad_message`` where the two contradict each other).
    """
    names = [name for key in KEYS if (name := message.get(key)) is not None]
    if len(names) == 1:
        return _role(names[0])
    if not names:
        found = ", ".join(sorted(message)) or "nothing"
        raise rejection.RejectedRowError(
            rejection.MISSING_ROLE_KEY, f"a message has neither role nor from, but {found}"
        )
    roles = [_role(name) for name in names]
    if len(set(roles)) > 1:
        raise rejection.RejectedRowError(
            rejection.BAD_MESSAGE, f"role says {names[0]!r}, from says {names[1]!r}"
        )
    return roles[0]


def _role(name: Any) -> Role:
    if not isinstance(name, str):
        raise rejection.RejectedRowError(rejection.UNKNOWN_ROLE, "a role that is no text")
    role = ROLES.get(name) or ROLES.get(_spelled(name))
    if role is None:
        raise rejection.RejectedRowError(rejection.UNKNOWN_ROLE, name)
    return role


def _spelled(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
