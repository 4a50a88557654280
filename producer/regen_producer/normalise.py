"""From one input row to one prompt, or to the reason why it can't be one. Pure; never raises."""

from dataclasses import dataclass
from typing import Any, Final

from regen_producer import (
    content,
    conversation,
    exact,
    rejection,
    text_flags,
    tool_text,
    tools,
    turns,
)

ID_COLUMN: Final = "id"
_CALL_KEYS: Final = ("tool_calls", "function_call", "function_calls")


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalised:
    """One prompt. ``id`` and ``extra`` can be written as strict JSON; texts are verbatim.

    ``tools`` is the list to send with the request; None also where the definitions stand in the
    text (``has_tools`` is true all the same). ``extra`` is the row's other columns.
    """

    id: Any
    messages: list[turns.Message]
    tools: list[dict[str, Any]] | None
    has_tools: bool
    n_user_turns: int
    flags: tuple[str, ...]
    extra: dict[str, Any]

    @property
    def multi_turn(self) -> bool:
        """Whether the user spoke more than once."""
        return self.n_user_turns > 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """No prompt, and why: ``error`` is one of :data:`rejection.CLASSES`."""

    error: str
    detail: str
    id: Any = None


def normalise(row: Any, *, mode: str = "strip") -> Normalised | Rejected:
    """What the row asks. ``mode`` is one of :data:`turns.MODES`."""
    if not isinstance(row, dict):
        detail = f"the row is {conversation.type_name(row)}, not an object"
        return Rejected(error=rejection.ROW_NOT_OBJECT, detail=detail)
    try:
        return _normalise(row, mode)
    except rejection.RejectedRowError as why:
        return Rejected(id=exact.strict(row.get(ID_COLUMN)), error=why.error, detail=why.detail)


def _normalise(row: dict[str, Any], mode: str) -> Normalised:
    spoken = conversation.turns(row)
    content.refuse_media(row, "the row")
    kept = turns.MODES[mode](row, spoken)
    for message in kept.messages:
        if not exact.is_writable(message["content"]):
            detail = f"in a {message['role']} turn"
            raise rejection.RejectedRowError(rejection.LONE_SURROGATE, detail)
    tools_column, offered = _tools(row, spoken)
    in_text = tool_text.detect(kept.messages)
    row_id = exact.strict(row.get(ID_COLUMN))
    flags = kept.flags.union(text_flags.flags("\n".join(m["content"] for m in kept.messages)))
    flags |= _tool_flags(spoken, offered, in_text)
    if row_id != row.get(ID_COLUMN):
        flags.add("id_rewritten")
    used = {ID_COLUMN, tools_column, kept.column, *conversation.COLUMNS}
    return Normalised(
        id=row_id,
        messages=kept.messages,
        tools=offered,
        has_tools=offered is not None or in_text is not None,
        n_user_turns=sum(message["role"] == "user" for message in kept.messages),
        flags=tuple(sorted(flags)),
        extra={name: value for name, value in row.items() if name not in used},
    )


def _tools(
    row: dict[str, Any], spoken: list[conversation.Turn]
) -> tuple[str | None, list[dict[str, Any]] | None]:
    """The row's definitions, and its column that held them; else those of a system or user turn."""
    for name in tools.COLUMNS:
        if (found := tools.of_column(row.get(name))) is not None:
            return name, found
    for turn in spoken:
        if turn.role in ("system", "user"):
            for name in tools.COLUMNS:
                if (found := tools.of_column(turn.message.get(name))) is not None:
                    return None, found
    return None, None


def _tool_flags(
    spoken: list[conversation.Turn], offered: list[dict[str, Any]] | None, in_text: str | None
) -> set[str]:
    flags = set()
    if in_text is not None:
        flags.add(f"tools_in_text:{in_text}")
    if any(turn.role in ("tool", "tool_call") or _calls(turn) for turn in spoken):
        flags.add("tool_turns")
        if offered is None and in_text is None:
            flags.add("tool_turns_without_tools")
    return flags


def _calls(turn: conversation.Turn) -> bool:
    return turn.role == "assistant" and any(turn.message.get(name) for name in _CALL_KEYS)
