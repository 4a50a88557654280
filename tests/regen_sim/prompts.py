"""A prompt as the server sees it: how many tokens it has, its ids, and which template it meets.

The ids carry the prompt's digest (and whether it had tools) behind the first token, so that a
request that goes on from ids alone can be answered with the rest of that prompt's answer.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from regen_sim import vocabulary as v

Opening = Literal["open", "closed", "plain"]
"""Where the answer begins: inside the thinking, behind an empty one, or before it."""

_OPENINGS: Final[dict[Opening, tuple[int, ...]]] = {
    "open": (v.THINK_OPEN, v.NEWLINE),
    "closed": (v.THINK_OPEN, v.BLANK_LINE, v.THINK_CLOSE, v.BLANK_LINE),
    "plain": (),
}
_TURN: Final = (v.IM_START, v.ASSISTANT, v.NEWLINE)
_HEAD_LENGTH: Final = 6  # <|im_start|>, four of the digest, the mark
_DIGEST_FIRST: Final = 20_000
_MARKS: Final = {130_001: False, 130_002: True}  # has it tools?
_BODY_FIRST: Final = 1_000
_BODY_SPAN: Final = 100_000
_FIXED: Final = _HEAD_LENGTH + 2 + len(_TURN)


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A prompt found again in ids, and the part of its answer that came with them."""

    digest: str
    has_tools: bool
    opening: Opening
    so_far: tuple[int, ...]


def count(prompt: bytes, opening: Opening) -> int:
    """How many tokens the rendered prompt has."""
    return _FIXED + (len(prompt) + 3) // 4 + len(_OPENINGS[opening])


def ids_of(prompt: bytes, digest: str, opening: Opening, *, has_tools: bool) -> list[int]:
    """The rendered prompt's ids, ``count`` of them."""
    words = struct.unpack(">4H", bytes.fromhex(digest))
    mark = next(mark for mark, tools in _MARKS.items() if tools == has_tools)
    padded = prompt + b" " * (-len(prompt) % 4)
    body = struct.unpack(f"<{len(padded) // 4}I", padded)
    return [
        v.IM_START,
        *(_DIGEST_FIRST + word for word in words),
        mark,
        *(_BODY_FIRST + chunk % _BODY_SPAN for chunk in body),
        v.IM_END,
        v.NEWLINE,
        *_TURN,
        *_OPENINGS[opening],
    ]


def recognise(ids: Sequence[int]) -> Known | None:
    """The prompt whose ids these are, or None for any other ids."""
    if len(ids) < _FIXED or ids[0] != v.IM_START or ids[_HEAD_LENGTH - 1] not in _MARKS:
        return None
    words = [token - _DIGEST_FIRST for token in ids[1 : _HEAD_LENGTH - 1]]
    turn = _last_turn(ids)
    if turn is None or not all(0 <= word < 1 << 16 for word in words):
        return None
    rest = tuple(ids[turn + len(_TURN) :])
    opening: Opening = "plain"
    for name in ("closed", "open"):
        if rest[: len(_OPENINGS[name])] == _OPENINGS[name]:
            opening = name
            break
    return Known(
        digest=struct.pack(">4H", *words).hex(),
        has_tools=_MARKS[ids[_HEAD_LENGTH - 1]],
        opening=opening,
        so_far=rest[len(_OPENINGS[opening]) :],
    )


def _last_turn(ids: Sequence[int]) -> int | None:
    for place in range(len(ids) - len(_TURN), 0, -1):
        if tuple(ids[place : place + len(_TURN)]) == _TURN:
            return place
    return None
