"""Rows of the store and lines of the dump."""

import json
from typing import Any

import orjson
import pytest

from regen_common.store import schema
from regen_producer import dump, inputs, raw, rejection, rows


def build(value: Any, index: int = 0, **choices: Any) -> rows.Row:
    builder = rows.Builder(inputs.Choices(**choices))
    return builder.build(index, f"a.jsonl:{index}", raw.RawRow(index, value))


def asking(text: str, **columns: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **columns}


def test_a_row_has_the_columns_of_the_schema() -> None:
    assert set(rows.COLUMNS) == set(rows.Row.__dataclass_fields__)


def test_a_prompt_is_written_as_json_that_can_be_sent() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    row = build(asking("hi", id="7", tools=[tool], source="w", rank=1 << 65))
    messages = [{"role": "user", "content": "hi"}]
    assert orjson.loads(row.messages) == messages
    assert (row.id, orjson.loads(row.tools or "")) == ('"7"', [tool])
    assert row.extra == '{"source":"w","rank":"36893488147419103232"}'
    assert row.sha256 == schema.prompt_digest(messages, [tool])
    assert row.prompt_chars == 2 + len(row.tools or "")
    assert (row.error, row.source, row.has_tools) == (None, "a.jsonl:0", True)


def test_prompt_chars_counts_characters_not_bytes() -> None:
    assert build(asking("\U0001f680é")).prompt_chars == 2


def test_two_ids_of_one_look_are_told_apart() -> None:
    assert build(asking("a", id=7)).id != build(asking("a", id="7")).id


def test_an_unreadable_row_keeps_the_reader_s_reason() -> None:
    found = raw.RawRow(3, None, rejection.INVALID_JSON, "line 4: why")
    row = rows.Builder(inputs.Choices()).build(9, "a.jsonl:3", found)
    assert (row.index, row.error, row.detail) == (9, "invalid_json", "line 4: why")
    assert (row.messages, row.id, row.sha256) == ("[]", None, schema.prompt_digest([], None))


@pytest.mark.parametrize(("chars", "error"), [(4, "too_long"), (5, None)])
def test_a_prompt_over_the_bound_is_too_long(chars: int, error: str | None) -> None:
    row = build(asking("hello", id=1), max_prompt_chars=chars)
    assert (row.error, row.id) == (error, "1")
    assert (row.messages == "[]") == (error is not None)


def test_a_repeated_prompt_is_rejected_only_when_asked_to() -> None:
    for dedupe, errors in ((False, [None] * 4), (True, [None, None, "duplicate_prompt", None])):
        builder = rows.Builder(inputs.Choices(dedupe=dedupe))
        values = [asking("a"), asking("b"), asking("a", id=5), asking("a", tools=[{"name": "f"}])]
        built = [builder.build(i, "x", raw.RawRow(i, value)) for i, value in enumerate(values)]
        assert [row.error for row in built] == errors
    assert built[2].detail == "the same prompt as index 0"


def test_a_prompt_that_is_in_the_store_already_counts_as_seen() -> None:
    builder = rows.Builder(inputs.Choices(dedupe=True))
    builder.remember([(3, build(asking("a")).sha256)])
    assert builder.build(8, "x", raw.RawRow(8, asking("a"))).error == "duplicate_prompt"
    assert builder.build(9, "x", raw.RawRow(9, asking("b"))).error is None


KEYS = [
    "index", "id", "messages", "tools", "has_tools", "multi_turn", "n_user_turns", "flags",
    "error", "detail",
]  # fmt: skip


def test_a_dump_line_is_strict_json_with_its_keys_in_order() -> None:
    tool = {"name": "f", "parameters": {"type": "object"}}
    line = json.loads(dump.line(build(asking("hi", id={"a": 1}, tools=[tool]))))
    assert list(line) == KEYS
    assert line["id"] == {"a": 1}
    assert line["tools"] == [{"type": "function", "function": tool}]
    assert (line["has_tools"], line["multi_turn"], line["n_user_turns"]) == (True, False, 1)
    assert (line["error"], line["detail"]) == (None, None)


def test_a_dump_line_of_a_rejected_row_says_why() -> None:
    line = json.loads(dump.line(build({"id": "x", "messages": []})))
    assert list(line) == KEYS
    assert (line["id"], line["messages"], line["tools"]) == ("x", [], None)
    assert (line["error"], line["detail"], line["flags"]) == ("empty_conversation", "no turns", [])


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\n", "\r", "\x0b", "\x1e"])
def test_no_reader_can_break_a_dump_line_inside_a_text(separator: str) -> None:
    line = dump.line(build(asking(f"a{separator}b")))
    assert line.decode().splitlines() == [line.decode()[:-1]]
    assert json.loads(line)["messages"][0]["content"] == f"a{separator}b"
