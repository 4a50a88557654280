"""The record: what one line of a batch holds, in this order of keys.

Lines are strict JSON in UTF-8, and ``\\n`` is the only line break in a batch: U+2028, U+2029 and
U+0085, at which some readers split, are written as escapes.
"""

from dataclasses import dataclass
from typing import Any, Final

import orjson

_LINE_BREAKS: Final = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """One generated turn, exact to the byte.

    ``glue[0] + reasoning + glue[1] + content + glue[2]`` is what the engine said, a missing part
    counting as empty; ``glue`` is null where the engine gives only parsed parts.
    """

    reasoning: str | None
    content: str | None
    glue: tuple[str, str, str] | None
    tool_calls: list[Any] | None
    finish_reason: str
    matched_stop: int | str | None
    prompt_ids: list[int] | None = None
    output_ids: list[int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The engine's own token counts; null where it gives none."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineFacts:
    """Which engine answered."""

    host: str
    gpu: int
    kind: str
    model: str | None
    weight_version: str | None
    version: str | None
    spec_accept_length: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """Prompt identity, completion and provenance. ``messages`` and ``tools`` are ready JSON."""

    index: int
    id: Any
    source: str
    run: str
    round: int
    attempt: int
    prompt_sha256: str
    category: str
    multi_turn: bool
    messages: orjson.Fragment
    tools: orjson.Fragment | None
    completion: Completion
    turns: list[Any] | None
    usage: Usage
    quality: list[str]
    sampling: dict[str, Any]
    engine: EngineFacts
    started_at: str
    latency_s: float


def encode(record: Record) -> bytes:
    """The record as one line, without its line break.

    Raises :class:`TypeError` (``orjson.JSONEncodeError``) on text that is no Unicode, such as a
    lone surrogate.
    """
    line = orjson.dumps(record)
    for raw, escaped in _LINE_BREAKS:
        line = line.replace(raw, escaped)
    return line
