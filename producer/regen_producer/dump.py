"""``--dump``: one line per row, for people and other tools to check what intake made of it."""

from typing import Final

import orjson

from regen_producer import rows

_LINE_BREAKS: Final = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)
"""At which some readers split lines; inside JSON strings they may be written as escapes."""


def line(row: rows.Row) -> bytes:
    """The row as strict JSON, with its line break."""
    body = orjson.dumps(
        {
            "index": row.index,
            "id": _fragment(row.id),
            "messages": orjson.Fragment(row.messages),
            "tools": _fragment(row.tools),
            "has_tools": row.has_tools,
            "multi_turn": row.multi_turn,
            "n_user_turns": row.n_user_turns,
            "flags": row.flags,
            "error": row.error,
            "detail": row.detail,
        }
    )
    for found, escape in _LINE_BREAKS:
        body = body.replace(found, escape)
    return body + b"\n"


def _fragment(text: str | None) -> orjson.Fragment | None:
    return None if text is None else orjson.Fragment(text)
