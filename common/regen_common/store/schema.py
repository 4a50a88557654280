"""What the prompt store looks like on disk.

``store.json`` beside ``part-NNNNN.parquet`` files of 100,000 rows in row groups of 1,000; one row
per index, rejected rows too. JSON columns are orjson's compact output.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pyarrow as pa

ROWS_PER_PART: Final = 100_000
ROWS_PER_GROUP: Final = 1_000
STORE_VERSION: Final = 1
STORE_FILE: Final = "store.json"

_COLUMNS: "Final[list[pa.Field[Any]]]" = [
    pa.field("index", pa.int64(), nullable=False),
    pa.field("id", pa.string()),  # JSON of the row's id; null where there is none
    pa.field("messages", pa.string(), nullable=False),  # JSON; [] where rejected
    pa.field("tools", pa.string()),  # JSON; null without definitions in a column
    pa.field("has_tools", pa.bool_(), nullable=False),
    pa.field("multi_turn", pa.bool_(), nullable=False),
    pa.field("n_user_turns", pa.int32(), nullable=False),
    pa.field("prompt_chars", pa.int64(), nullable=False),
    pa.field("flags", pa.list_(pa.string()), nullable=False),
    pa.field("error", pa.string()),  # rejection class; null where accepted
    pa.field("detail", pa.string()),
    pa.field("source", pa.string(), nullable=False),  # file:row, rows from 0
    pa.field("extra", pa.string()),  # JSON of the other input columns
    pa.field("sha256", pa.string(), nullable=False),  # of prompt_digest's bytes, hex
]
SCHEMA: Final = pa.schema(_COLUMNS)


def part_name(number: int) -> str:
    """``part-00000.parquet`` and so on."""
    return f"part-{number:05d}.parquet"


def prompt_digest(messages: list[Any], tools: list[Any] | None) -> str:
    """The prompt's identity by content: sha256 in hex over orjson of its messages and tools."""
    body = orjson.dumps({"messages": messages, "tools": tools}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One accepted row, as the consumer needs it. ``*_json`` are ready to be sent."""

    index: int
    id: Any
    messages_json: bytes
    tools_json: bytes | None
    has_tools: bool
    multi_turn: bool
    prompt_chars: int
    source: str
    sha256: str

    @property
    def category(self) -> str:
        return "tools" if self.has_tools else "chat"


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What intake found, by category and class."""

    input: int
    tools: int
    chat: int
    multi_turn: int
    rejected: dict[str, int]

    @property
    def rejected_total(self) -> int:
        return sum(self.rejected.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreInfo:
    """The content of ``store.json``. It is written last: a folder without it is no store."""

    version: int
    run: str
    turns: str
    fingerprint: str
    limit: int | None
    files: list[dict[str, Any]]
    counts: Counts
    parts: list[dict[str, Any]]  # {"name", "rows"} in order of index
    cut: str | None  # where and how the input ended too early, if it did
