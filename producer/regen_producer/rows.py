"""One row of the store: an input row with its index, as a prompt or with the reason against it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from regen_common.store import schema
from regen_producer import exact, inputs, normalise, raw, rejection

COLUMNS: Final = tuple(schema.SCHEMA.names)

_NO_PROMPT_SHA256: Final = schema.prompt_digest([], None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """The columns of the store's schema. JSON columns are text."""

    index: int
    id: str | None
    messages: str
    tools: str | None
    has_tools: bool
    multi_turn: bool
    n_user_turns: int
    prompt_chars: int
    flags: list[str]
    error: str | None
    detail: str | None
    source: str
    extra: str | None
    sha256: str


class Builder:
    """Makes rows in order of index, and knows the prompts that it has seen (``dedupe``)."""

    def __init__(self, choices: inputs.Choices) -> None:
        self._mode = choices.turns
        self._chars_max = choices.max_prompt_chars
        self._seen: dict[bytes, int] | None = {} if choices.dedupe else None

    def remember(self, prompts: Iterable[tuple[int, str]]) -> None:
        """Prompts that an earlier intake has stored: index and digest."""
        if self._seen is not None:
            self._seen.update({_key(sha256): index for index, sha256 in prompts})

    def build(self, index: int, source: str, found: raw.RawRow) -> Row:
        """The row of the store for what a reader found. Never raises on any JSON value."""
        if found.error is not None:
            return _rejected(index, source, found.error, found.detail or "", None)
        prompt = normalise.normalise(found.value, mode=self._mode)
        if isinstance(prompt, normalise.Rejected):
            return _rejected(index, source, prompt.error, prompt.detail, prompt.id)
        row = _accepted(index, source, prompt)
        for judge in (self._judge_length, self._judge_novelty):
            if why := judge(row):
                return _rejected(index, source, *why, prompt.id)
        return row

    def _judge_length(self, row: Row) -> tuple[str, str] | None:
        if self._chars_max is None or row.prompt_chars <= self._chars_max:
            return None
        detail = f"{row.prompt_chars:,} characters, {self._chars_max:,} are allowed"
        return rejection.TOO_LONG, detail

    def _judge_novelty(self, row: Row) -> tuple[str, str] | None:
        if self._seen is None:
            return None
        first = self._seen.setdefault(_key(row.sha256), row.index)
        if first == row.index:
            return None
        return rejection.DUPLICATE_PROMPT, f"the same prompt as index {first}"


def _accepted(index: int, source: str, prompt: normalise.Normalised) -> Row:
    tools = None if prompt.tools is None else orjson.dumps(prompt.tools).decode()
    chars = sum(len(message["content"]) for message in prompt.messages)
    return Row(
        index=index,
        id=_json(prompt.id),
        messages=orjson.dumps(prompt.messages).decode(),
        tools=tools,
        has_tools=prompt.has_tools,
        multi_turn=prompt.multi_turn,
        n_user_turns=prompt.n_user_turns,
        prompt_chars=chars + len(tools or ""),
        flags=list(prompt.flags),
        error=None,
        detail=None,
        source=source,
        extra=_json(prompt.extra or None),
        sha256=schema.prompt_digest(prompt.messages, prompt.tools),
    )


def _rejected(index: int, source: str, error: str, detail: str, row_id: Any) -> Row:
    return Row(
        index=index,
        id=_json(row_id),
        messages="[]",
        tools=None,
        has_tools=False,
        multi_turn=False,
        n_user_turns=0,
        prompt_chars=0,
        flags=[],
        error=error,
        detail=detail,
        source=source,
        extra=None,
        sha256=_NO_PROMPT_SHA256,
    )


def _key(sha256: str) -> bytes:
    return bytes.fromhex(sha256)[:16]


def _json(value: Any) -> str | None:
    return None if value is None else exact.dumps(value).decode()
