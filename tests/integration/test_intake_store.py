"""Intake into a real folder: what stands in it afterwards, and after every way to be interrupted."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from regen_common import errors
from regen_common.store import reader, schema
from regen_producer import intake, lock, writer

Intake = Callable[..., intake.Intake]
DEADLINE_S = 60


def asking(number: int, **columns: Any) -> dict[str, Any]:
    return {
        "id": number,
        "messages": [{"role": "user", "content": f"What is {number}?"}],
        **columns,
    }


TOOL = {"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}
MIXED = [
    asking(0),
    asking(1, tools=[TOOL]),
    {"id": 2, "messages": []},
    {"id": 3, "conversations": [{"from": "human", "value": "a"}, {"from": "human", "value": "b"}]},
    "no row",
]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of 2 rows, parts of 4: the reader divides by the same."""
    monkeypatch.setattr(schema, "ROWS_PER_GROUP", 2)
    monkeypatch.setattr(schema, "ROWS_PER_PART", 4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", MIXED)


@pytest.fixture
def run(tmp_path: Path, source: Path) -> Intake:
    def call(**changes: Any) -> intake.Intake:
        given = {"inputs": [str(source)], "store": tmp_path / "store", "run": "r", **changes}
        return intake.run_intake(**given)

    return call


def write(path: Path, rows: list[Any]) -> Path:
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return path


def dumped(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_row_is_in_the_store_under_its_index(run: Intake, tmp_path: Path) -> None:
    found = run()
    store = reader.Store(tmp_path / "store")
    assert [store.row(index)["error"] for index in range(5)] == [
        None,
        None,
        "empty_conversation",
        None,
        "row_not_object",
    ]
    first, second, fourth = store.prompts([0, 1, 3])
    assert json.loads(first.messages_json) == [{"role": "user", "content": "What is 0?"}]
    assert (first.id, first.source, first.category) == (0, "in.jsonl:0", "chat")
    assert json.loads(second.tools_json or b"") == [TOOL]
    assert (second.category, fourth.multi_turn) == ("tools", True)
    assert store.info == found.info
    store.close()


def test_the_intake_says_what_it_found(run: Intake) -> None:
    found = run()
    counts = found.info.counts
    assert (counts.input, counts.tools, counts.chat, counts.multi_turn) == (5, 1, 2, 1)
    assert counts.rejected == {"empty_conversation": 1, "row_not_object": 1}
    assert (found.tools, found.multi_turn, found.rejected) == (b"\x40", b"\x10", b"\x28")
    assert found.rejections["row_not_object"].first[0].source == "in.jsonl:4"
    assert found.info.files[0]["rows"] == 5
    assert (found.how, found.info.cut, found.info.run) == ("built", None, "r")


def test_the_columns_on_disk_are_the_schema_s(run: Intake, tmp_path: Path) -> None:
    run()
    assert pq.read_schema(tmp_path / "store" / "part-00000.parquet").equals(schema.SCHEMA)
    assert files(tmp_path / "store") == ["part-00000.parquet", lock.LOCK_FILE, "store.json"]


@pytest.mark.usefixtures("small_parts")
def test_rows_are_divided_into_parts_and_groups(run: Intake, tmp_path: Path) -> None:
    source = write(tmp_path / "many.jsonl", [asking(n) for n in range(11)])
    found = run(inputs=[str(source)])
    assert [part["rows"] for part in found.info.parts] == [4, 4, 3]
    part = pq.ParquetFile(tmp_path / "store" / "part-00001.parquet")
    assert [part.metadata.row_group(n).num_rows for n in range(2)] == [2, 2]
    part.close()
    store = reader.Store(tmp_path / "store")
    assert [prompt.id for prompt in store.prompts(range(11))] == list(range(11))
    store.close()


def test_several_files_are_one_input(run: Intake, tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", [asking(0), asking(1)])
    two = tmp_path / "two.json"
    two.write_text(json.dumps([asking(2)], indent=1))
    found = run(inputs=[str(one), str(two)])
    store = reader.Store(tmp_path / "store")
    assert [store.row(n)["source"] for n in range(3)] == [
        "one.jsonl:0",
        "one.jsonl:1",
        "two.json:0",
    ]
    assert [file["rows"] for file in found.info.files] == [2, 1]
    store.close()


def test_the_dump_has_one_line_per_row_and_is_the_same_from_the_store(
    run: Intake, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("dry", "built", "loaded")]
    for path, how in zip(paths, ({"dry_run": True}, {}, {}), strict=True):
        assert run(dump=path, **how).how == (path.name)
    lines = dumped(paths[0])
    assert [line["index"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line["error"] for line in lines][2:] == ["empty_conversation", None, "row_not_object"]
    assert len({path.read_bytes() for path in paths}) == 1


def test_a_dry_run_writes_nothing_but_the_dump(run: Intake, tmp_path: Path) -> None:
    found = run(dry_run=True, dump=tmp_path / "dump")
    assert files(tmp_path) == ["dump", "in.jsonl"]
    assert found.how == "dry"
    assert found.info.counts.input == 5


def test_a_finished_store_is_found_again_without_reading_the_input(
    run: Intake, tmp_path: Path
) -> None:
    built = run()
    again = run()
    loaded = intake.load(tmp_path / "store")
    assert again.how == loaded.how == "loaded"
    for found in (again, loaded):
        assert found.info == built.info
        assert found.rejections == built.rejections
        assert (found.tools, found.multi_turn, found.rejected) == (
            built.tools,
            built.multi_turn,
            built.rejected,
        )


def test_progress_is_told_and_ends_with_the_whole(run: Intake, tmp_path: Path) -> None:
    source = write(tmp_path / "many.jsonl", [asking(n, tools=[TOOL]) for n in range(2500)])
    told: list[intake.IntakeProgress] = []
    run(inputs=[str(source)], progress=told.append)
    assert [step.rows for step in told] == [1000, 2000, 2500]
    size = source.stat().st_size
    assert told[-1] == intake.IntakeProgress(
        rows=2500, tools=2500, rejected=0, bytes_read=size, bytes_total=size
    )


def test_a_huge_id_comes_back_exactly(run: Intake, tmp_path: Path) -> None:
    source = write(tmp_path / "ids.jsonl", [asking(12345678901234567890123)])
    run(inputs=[str(source)], dump=tmp_path / "dump")
    store = reader.Store(tmp_path / "store")
    assert store.prompts([0])[0].id == "12345678901234567890123"
    assert dumped(tmp_path / "dump")[0]["id"] == "12345678901234567890123"
    store.close()


# --- limits, and a store that grows -------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
def test_a_raised_limit_adds_to_the_store_and_keeps_its_parts(run: Intake, tmp_path: Path) -> None:
    source = write(tmp_path / "many.jsonl", [asking(n, tools=[TOOL] * (n % 2)) for n in range(20)])
    given = {"inputs": [str(source)], "dump": tmp_path / "dump"}
    first = run(limit=5, **given)
    before = {path.name: path.stat().st_ino for path in (tmp_path / "store").glob("part-*")}
    second = run(limit=12, **given)
    third = run(**given)
    fresh = run(**given, store=tmp_path / "fresh")
    assert [found.how for found in (first, second, third)] == ["built", "extended", "extended"]
    assert [found.info.counts.input for found in (first, second, third)] == [5, 12, 20]
    assert third.info.limit is None
    after = {path.name: path.stat().st_ino for path in (tmp_path / "store").glob("part-*")}
    assert before.items() <= after.items()
    assert (third.info.counts, third.tools) == (fresh.info.counts, fresh.tools)
    assert third.info.files == fresh.info.files
    assert [line["index"] for line in dumped(tmp_path / "dump")] == list(range(20))
    store = reader.Store(tmp_path / "store")
    assert [prompt.id for prompt in store.prompts(range(20))] == list(range(20))
    store.close()


def test_rows_of_an_earlier_limit_count_as_seen_by_dedupe(run: Intake, tmp_path: Path) -> None:
    source = write(tmp_path / "twice.jsonl", [asking(0), asking(1), asking(0)])
    given = {"inputs": [str(source)], "dedupe": True}
    run(limit=2, **given)
    found = run(**given)
    assert found.info.counts.rejected == {"duplicate_prompt": 1}


def test_a_limit_can_not_be_lowered_below_what_is_stored(run: Intake) -> None:
    run()
    with pytest.raises(errors.UsageError, match="holds 5 rows already"):
        run(limit=4)


@pytest.mark.parametrize("limit", [5, 9])
def test_a_limit_that_changes_nothing_is_no_reason_to_read(run: Intake, limit: int) -> None:
    run()
    assert run(limit=limit).how == "loaded"


def test_a_limit_ends_the_reading_before_a_cut(run: Intake, tmp_path: Path) -> None:
    source = tmp_path / "cut.jsonl"
    source.write_bytes(write(source, [asking(0), asking(1)]).read_bytes() + b'{"id": "ha')
    assert run(inputs=[str(source)], limit=2).info.cut is None


# --- input that is cut, empty, or not what it was -----------------------------------------------


@pytest.fixture
def cut_source(tmp_path: Path) -> Path:
    path = tmp_path / "cut.json"
    path.write_bytes(json.dumps([asking(0), asking(1), asking(2)]).encode()[:-20])
    return path


def test_a_cut_input_is_refused_after_its_whole_rows_were_dumped(
    run: Intake, cut_source: Path, tmp_path: Path
) -> None:
    told: list[intake.IntakeProgress] = []
    with pytest.raises(errors.InputError) as caught:
        run(inputs=[str(cut_source)], dump=tmp_path / "dump", progress=told.append)
    text = str(caught.value)
    assert text.startswith("cut.json is cut after 2 whole rows: it ends inside a string at byte ")
    assert text.endswith("; --allow-truncated uses the whole rows")
    assert [line["id"] for line in dumped(tmp_path / "dump")] == [0, 1]
    assert told[-1].rows == 2
    assert files(tmp_path / "store") == [lock.LOCK_FILE]


def test_the_whole_rows_of_a_cut_input_can_be_used(run: Intake, cut_source: Path) -> None:
    found = run(inputs=[str(cut_source)], allow_truncated=True)
    assert found.info.counts.input == 2
    assert "inside a string" in (found.info.cut or "")
    assert run(inputs=[str(cut_source)]).info.cut == found.info.cut


def test_two_cut_files_are_both_named(run: Intake, cut_source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(b'{"id": 1')
    with pytest.raises(
        errors.InputError, match=r"cut\.json is cut after 2 .*other\.jsonl is cut after 0"
    ):
        run(inputs=[str(cut_source), str(other)])


@pytest.mark.parametrize("data", [b"", b"\n", b"[]"])
def test_an_input_without_rows_is_an_error_and_leaves_no_store(
    run: Intake, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "empty.json").write_bytes(data)
    with pytest.raises(errors.InputError, match=r"no rows in .*empty\.json"):
        run(inputs=[str(tmp_path / "empty.json")])
    assert not (tmp_path / "store" / "store.json").exists()


def test_an_empty_file_beside_others_is_no_error(run: Intake, source: Path, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    assert run(inputs=[str(empty), str(source)]).info.counts.input == 5


def test_a_file_that_grows_while_it_is_read_is_an_error(run: Intake, tmp_path: Path) -> None:
    source = write(tmp_path / "grows.jsonl", [asking(n) for n in range(1500)])

    def grow(_progress: intake.IntakeProgress) -> None:
        with source.open("ab") as file:
            file.write(b"\n")

    with pytest.raises(errors.InputError, match="changed while it was read"):
        run(inputs=[str(source)], progress=grow)
    assert not (tmp_path / "store" / "store.json").exists()


# --- a folder that is not, or not only, this run's ----------------------------------------------


def test_another_input_is_refused_and_the_store_stays(run: Intake, tmp_path: Path) -> None:
    built = run()
    other = write(tmp_path / "other.jsonl", [asking(9)])
    with pytest.raises(errors.RunMismatchError, match=r"in\.jsonl.*another --run"):
        run(inputs=[str(other)])
    assert reader.read_info(tmp_path / "store") == built.info


def test_other_flags_that_change_the_store_are_refused(run: Intake) -> None:
    run()
    with pytest.raises(errors.RunMismatchError):
        run(dedupe=True)


def test_another_run_s_store_is_refused(run: Intake) -> None:
    run()
    with pytest.raises(errors.StoreError, match="the store of run 'r'"):
        run(run="other")


def test_a_folder_with_other_things_in_it_is_left_alone(run: Intake, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "part-00000.parquet").write_bytes(b"precious")
    with pytest.raises(errors.UsageError, match="holds other things"):
        run(store=folder)
    assert files(folder) == ["part-00000.parquet"]


def test_a_store_that_was_copied_without_its_lock_is_a_store(run: Intake, tmp_path: Path) -> None:
    run()
    (tmp_path / "store" / lock.LOCK_FILE).unlink()
    assert run().how == "loaded"


def test_a_store_that_contradicts_its_description_is_refused(run: Intake, tmp_path: Path) -> None:
    run()
    path = tmp_path / "store" / "store.json"
    path.write_text(path.read_text().replace('"chat": 2', '"chat": 3'))
    with pytest.raises(errors.StoreError, match="are not those that"):
        run()


@pytest.mark.parametrize(
    ("changes", "cure"),
    [({"turns": "all"}, "can't be done yet"), ({"limit": 0}, "at least one row")],
)
def test_what_can_not_be_done_is_refused_before_reading(
    run: Intake, changes: dict[str, Any], cure: str
) -> None:
    with pytest.raises(errors.UsageError, match=cure):
        run(inputs=["no such file"], **changes)


def test_a_dump_that_can_not_be_written_is_a_usage_error(run: Intake, tmp_path: Path) -> None:
    with pytest.raises(errors.UsageError, match=r"--dump .*No such file"):
        run(dump=tmp_path / "none" / "dump")


# --- crashes and rivals: real processes ---------------------------------------------------------

CHILD = """
import os, sys
from pathlib import Path
from regen_common.store import schema
from regen_producer import intake
schema.ROWS_PER_GROUP, schema.ROWS_PER_PART = 500, 1000

def told(progress):
    if progress.rows == 2000:
        print("reading", flush=True)
        sys.stdin.read(1)

intake.run_intake(inputs=[sys.argv[1]], store=Path(sys.argv[2]), run="r", progress=told,
                  limit=int(sys.argv[3]))
"""


@pytest.fixture
def long_source(tmp_path: Path) -> Path:
    return write(tmp_path / "long.jsonl", [asking(n) for n in range(3000)])


@pytest.fixture
def producer(tmp_path: Path, long_source: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A producer in the middle of its reading, with parts written and one under way."""
    command = [sys.executable, "-c", CHILD, str(long_source), str(tmp_path / "store"), "2500"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"reading\n"
        yield child
        child.kill()


def test_two_producers_do_not_write_one_store(
    producer: subprocess.Popen[bytes], run: Intake, long_source: Path
) -> None:
    with pytest.raises(errors.UsageError, match="another regen-produce is writing"):
        run(inputs=[str(long_source)])
    producer.communicate(b"x", timeout=DEADLINE_S)
    assert producer.returncode == 0
    assert run(inputs=[str(long_source)]).how == "extended"


def test_a_producer_killed_midway_leaves_no_store_and_the_next_starts_afresh(
    producer: subprocess.Popen[bytes], run: Intake, long_source: Path, tmp_path: Path
) -> None:
    producer.send_signal(signal.SIGKILL)
    producer.wait(DEADLINE_S)
    left = files(tmp_path / "store")
    assert "part-00000.parquet" in left
    assert "store.json" not in left
    with pytest.raises(errors.StoreError, match="no prompt store"):
        intake.load(tmp_path / "store")
    found = run(inputs=[str(long_source)])
    assert (found.how, found.info.counts.input) == ("built", 3000)
    assert files(tmp_path / "store") == ["part-00000.parquet", lock.LOCK_FILE, "store.json"]


def test_an_extension_killed_midway_leaves_the_store_as_it_was(
    run: Intake, long_source: Path, tmp_path: Path
) -> None:
    built = run(inputs=[str(long_source)], limit=700)
    command = [sys.executable, "-c", CHILD, str(long_source), str(tmp_path / "store"), "2500"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"reading\n"
        child.kill()
    assert intake.load(tmp_path / "store").info == built.info
    assert run(inputs=[str(long_source)], limit=700).how == "loaded"
    assert run(inputs=[str(long_source)]).info.counts.input == 3000


class Killed(BaseException):
    """Ends a producer in this process as SIGKILL would: nothing is cleaned up."""


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("stored", [0, 3])
def test_death_before_any_step_to_the_disk_leaves_the_old_state_or_the_new(
    run: Intake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    source = write(tmp_path / "many.jsonl", [asking(n) for n in range(11)])
    steps = 0
    for fatal in range(100):
        store = tmp_path / f"store{fatal}"
        given = {"inputs": [str(source)], "store": store}
        if stored:
            run(limit=stored, **given)
        with monkeypatch.context() as patch:
            steps = die_at(patch, fatal, functools.partial(run, **given))
        counts = intake.load(store).info.counts.input if (store / "store.json").exists() else 0
        assert counts in (stored, 11)
        if steps <= fatal:
            break
        assert run(**given).info.counts.input == 11
        assert [line["index"] for line in stored_lines(run, given, tmp_path)] == list(range(11))
    assert steps >= 10


def die_at(patch: pytest.MonkeyPatch, fatal: int, produce: Callable[[], object]) -> int:
    """How many steps to the disk ``produce`` began; it dies before the one numbered ``fatal``."""
    steps = 0

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > fatal:
                raise Killed
            return step(*given)

        return call

    patch.setattr(os, "fsync", counted(os.fsync))
    patch.setattr(Path, "replace", counted(Path.replace))
    patch.setattr(Path, "write_bytes", counted(Path.write_bytes))
    patch.setattr(writer.Writer, "_discard", lambda _self: None)
    with contextlib.suppress(Killed):
        produce()
    return steps


def stored_lines(run: Intake, given: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    assert run(**given, dump=folder / "check").how == "loaded"
    return dumped(folder / "check")


def test_a_full_disk_is_one_clear_error_and_leaves_no_store(
    run: Intake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.StoreError, match=r"No space left.*start the same command again"):
        run()
    assert files(tmp_path / "store") == [lock.LOCK_FILE]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A child reads 120 MB of array under a limit that has no room for a third of it."""
    rows = b",".join([json.dumps(asking(1, pad="x" * 9_000)).encode()] * 2_000)
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.write(b"[" + b",".join([rows] * 6) + b"]")
    code = (
        "import resource, sys; from pathlib import Path; from regen_producer import intake\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "before = peak()\n"
        "found = intake.run_intake(inputs=[sys.argv[1]], store=Path('x'), run='r', dry_run=True)\n"
        "print(found.info.counts.input, peak() - before)\n"
    )
    start_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, timeout=DEADLINE_S
    )
    count, grown_mib = map(int, done.stdout.split())
    assert count == 12_000
    assert grown_mib < 40, f"after {time.monotonic() - start_s:.1f} s"
