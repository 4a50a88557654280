"""A row's turns: which column holds them, and the shapes in which it may hold them."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from regen_producer import exact, rejection, roles

COLUMNS: Final = ("conversations", "messages", "conversation")
"""The first of these that is not null holds the turns; one that holds some goes before an empty
one."""

_ENCODED_MAX: Final = 2


class Turn(NamedTuple):
    """One message and who speaks in it."""

    role: roles.Role
    message: dict[str, Any]


def has_column(value: Any) -> bool:
    """Whether the value is an object with a column for turns."""
    return isinstance(value, dict) and any(name in value for name in COLUMNS)


def turns(row: dict[str, Any]) -> list[Turn]:
    """The row's turns, at least one.

    Raises :class:`rejection.RejectedRowError`.
    """
    messages = [_message(item, place) for place, item in enumerate(_list(_column(row)))]
    if not messages:
        raise rejection.RejectedRowError(rejection.EMPTY_CONVERSATION, "no turns")
    return [Turn(roles.role_of(message), message) for message in messages]


def _column(row: dict[str, Any]) -> Any:
    values = [_decoded(row[name]) for name in COLUMNS if row.get(name) is not None]
    values = [value for value in values if value is not None]
    if not values:
        found = ", ".join(sorted(row)) or "no columns"
        raise rejection.RejectedRowError(
            rejection.MISSING_CONVERSATIONS, f"none of {', '.join(COLUMNS)}, but {found}"
        )
    return next((value for value in values if value), values[0])


def _decoded(value: Any) -> Any:
    """What a JSON string holds; a blank one holds no turns."""
    for _ in range(_ENCODED_MAX):
        if not isinstance(value, str):
            break
        if not value.strip():
            return []
        try:
            value = exact.parse(value)
        except ValueError as cause:
            raise rejection.RejectedRowError(
                rejection.BAD_CONVERSATIONS, f"a string that is no JSON: {exact.complaint(cause)}"
            ) from cause
    return value


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return _rows_of_columns(value)
    raise rejection.RejectedRowError(
        rejection.BAD_CONVERSATIONS, f"wants a list of messages, not {type_name(value)}"
    )


def _rows_of_columns(columns: dict[str, Any]) -> list[Any]:
    """``{"from": [...], "value": [...]}``, as column-wise stores hold a list of objects."""
    lists = {name: items for name, items in columns.items() if items is not None}
    lengths = {len(items) for items in lists.values() if isinstance(items, list)}
    if len(lengths) > 1 or not all(isinstance(items, list) for items in lists.values()):
        raise rejection.RejectedRowError(
            rejection.BAD_CONVERSATIONS, "an object that is no set of equally long lists"
        )
    rows: Iterable[tuple[Any, ...]] = zip(*lists.values(), strict=True)
    return [dict(zip(lists, values, strict=True)) for values in rows]


def _message(item: Any, place: int) -> dict[str, Any]:
    if isinstance(item, str) and item.lstrip().startswith("{"):
        try:
            item = exact.parse(item)
        except ValueError as cause:
            raise rejection.RejectedRowError(
                rejection.BAD_MESSAGE, f"message {place} is a string that is no JSON"
            ) from cause
    if not isinstance(item, dict):
        raise rejection.RejectedRowError(
            rejection.BAD_MESSAGE, f"message {place} is {type_name(item)}, not an object"
        )
    return item


def type_name(value: Any) -> str:
    """What JSON calls the type of a value."""
    if value is None:
        return "null"
    names = ((bool, "a boolean"), (int | float, "a number"), (str, "a string"), (list, "a list"))
    return next((name for kind, name in names if isinstance(value, kind)), "an object")
