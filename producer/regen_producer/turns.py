"""Which turns a prompt is made of: one function per mode of ``--turns``.

``strip`` keeps what the system and the user said, and the model answers once at the end. A mode
takes the row's turns and returns messages; ``last`` and ``all`` have a place beside it.
"""

import itertools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from regen_producer import content, conversation, rejection

Message = dict[str, str]

_SYSTEM_COLUMNS: Final = ("system", "system_prompt")
_SYSTEM_GLUE: Final = "\n\n"


class Kept(NamedTuple):
    """The messages of a prompt, system first, and what was remarkable on the way."""

    messages: list[Message]
    flags: set[str]
    column: str | None
    """The row's column that gave the system text."""


def strip(row: dict[str, Any], turns: list[conversation.Turn]) -> Kept:
    """System and user turns only.

    Raises :class:`rejection.RejectedRowError`.
    """
    systems: list[str] = []
    users: list[str] = []
    flags: set[str] = set()
    for turn in turns:
        if turn.role == "system":
            _add_system(turn, systems, flags, late=bool(users))
        elif turn.role == "user":
            _add_user(turn, users, flags)
    _flag_order(turns, flags)
    column = _add_system_column(row, systems, flags)
    if not users:
        raise _no_user(flags)
    head = [{"role": "system", "content": _SYSTEM_GLUE.join(systems)}] if systems else []
    return Kept([*head, *({"role": "user", "content": text} for text in users)], flags, column)


MODES: Final[dict[str, Callable[[dict[str, Any], list[conversation.Turn]], Kept]]] = {
    "strip": strip,
}


def _add_system(
    turn: conversation.Turn, systems: list[str], flags: set[str], *, late: bool
) -> None:
    text = content.text_of(turn)
    if text is None or not text.strip():
        flags.add("system_blank_dropped")
    elif text in systems:
        flags.add("system_repeated")
    elif late:
        raise rejection.RejectedRowError(
            rejection.SYSTEM_NOT_FIRST, "a system turn after a user turn"
        )
    else:
        if systems:
            flags.add("system_merged")
        systems.append(text)


def _add_user(turn: conversation.Turn, users: list[str], flags: set[str]) -> None:
    text = content.text_of(turn)
    if text is None:
        raise rejection.RejectedRowError(rejection.NULL_CONTENT, "a user turn is null")
    bare = text.strip()
    if not bare:
        flags.add("user_blank_dropped")
    elif bare.startswith("<tool_response>") and bare.endswith("</tool_response>"):
        # Qwen's template takes such a turn for a tool's answer, and asks for a real question
        flags.add("tool_turns")
    else:
        users.append(text)


def _flag_order(turns: list[conversation.Turn], flags: set[str]) -> None:
    spoken = [turn.role for turn in turns if turn.role != "system"]
    if spoken and spoken[0] != "user":
        flags.add("starts_with_assistant")
    if any(here == after == "user" for here, after in itertools.pairwise(spoken)):
        flags.add("consecutive_user_turns")


def _add_system_column(row: dict[str, Any], systems: list[str], flags: set[str]) -> str | None:
    """A system column counts where no turn is one; a turn knows better what it belongs to."""
    for name in _SYSTEM_COLUMNS:
        value = row.get(name)
        if value is None or value == "":
            continue
        text = content.text_of(conversation.Turn("system", {"content": value}))
        if text is None or not text.strip():
            continue
        if systems:
            if text not in systems:
                flags.add("system_column_ignored")
            return None
        systems.append(text)
        return name
    return None


def _no_user(flags: set[str]) -> rejection.RejectedRowError:
    if "user_blank_dropped" in flags:
        return rejection.RejectedRowError(rejection.BLANK_USER, "every user turn is blank")
    return rejection.RejectedRowError(rejection.NO_USER_TURN, "no user turn")
