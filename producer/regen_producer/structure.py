"""Where a JSON value ends, by its brackets and strings alone: also when it is no valid JSON."""

import re
from typing import Final, Literal, NamedTuple

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FILLING = rf'[^"{{}}\[\]]*+(?:{_STRING}[^"{{}}\[\]]*+)*+'
_NEXT_BRACKET = re.compile(rf"{_FILLING}([{{}}\[\]])", re.DOTALL)
_TO_BRACKET_OR_END = re.compile(_FILLING, re.DOTALL)
_CLOSES: Final = {"}": "{", "]": "["}

WHERE: Final = {"string": "inside a string", "open": "inside a row", "broken": "inside a row"}
"""How a report says where a text ends."""


class Extent(NamedTuple):
    """``end`` is one past the value's last bracket; None where the text does not hold it."""

    end: int | None
    state: Literal["closed", "string", "open", "broken"]


def extent(text: str, start: int) -> Extent:
    """From the opening bracket at ``start`` to the one that closes it.

    ``open`` and ``string``: the text ends too early. ``broken``: brackets that don't match.
    """
    opened: list[str] = []
    at = start
    while found := _NEXT_BRACKET.match(text, at):
        bracket, at = found[1], found.end()
        if bracket in _CLOSES:
            if opened.pop() != _CLOSES[bracket]:
                return Extent(None, "broken")
            if not opened:
                return Extent(at, "closed")
        else:
            opened.append(bracket)
    rest = _TO_BRACKET_OR_END.match(text, at)
    in_string = rest is not None and rest.end() < len(text)
    return Extent(None, "string" if in_string else "open")
