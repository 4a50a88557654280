"""``regen-run``: everything on one machine, stopped anywhere, and the demo's real model."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import acceptance_kit as kit
import helpers
from regen_sim.process import Sim


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[kit.Node]:
    """A machine without any Redis."""
    with kit.node(tmp_path, "redis://127.0.0.1:1/0") as found:
        yield found


def processes_in(folder: Path) -> list[str]:
    """Command lines of live processes that work in this folder."""
    out = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        line = b" ".join(words).decode(errors="replace")
        if str(folder) in line and "pytest" not in line:
            out.append(line)
    return out


def check(folder: Path, n: int) -> None:
    assert helpers.times_each(helpers.read_batches(folder)) == Counter(range(n))


def test_somebodys_file_against_their_server(alone: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 100, tools_last=10)
    with Sim(reasoning_parser="qwen3", latency="fixed:0.1") as sim:
        ended = alone.run(
            "regen-run", "in.jsonl", "--out", "out", "--engine", sim.url, within_s=120
        )
    assert "100.0% of 100" in ended.out
    assert "One of them" in ended.out
    assert str(tmp_path / "out" / "regen" / "batches") in ended.out
    check(tmp_path / "out", 100)
    assert processes_in(tmp_path) == []
    again = alone.run("regen-run", "in.jsonl", "--out", "out", "--engine", sim.url, within_s=60)
    assert "100.0% of 100" in again.out
    check(tmp_path / "out", 100)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_stopped_anywhere_the_same_command_goes_on(
    alone: kit.Node, tmp_path: Path, how: signal.Signals
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 120)
    words = ("regen-run", "in.jsonl", "--out", "out")
    with Sim(reasoning_parser="qwen3", latency="fixed:0.5", max_running=8) as sim:
        command = (*words, "--engine", sim.url)
        for _ in range(2):
            wanted = sim.stats()["completed"] + 10
            first = alone.start(*command)
            kit.wait_until(
                lambda n=wanted: sim.stats()["completed"] >= n, within_s=60, what="some answers"
            )
            first.signal(how)
            code = first.wait(40)
            if how is signal.SIGINT:
                assert code == 130, first.said
                assert "goes on" in first.said
            kit.wait_until(lambda: not processes_in(tmp_path), within_s=40, what="no process left")
        alone.run(*command, within_s=120)
        seen = sim.stats()["digests"]
    check(tmp_path / "out", 120)
    if how is signal.SIGINT:  # only what was in flight is asked again
        assert sum(seen.values()) <= 120 + 3 * 9


def test_two_of_them_in_one_folder_do_not_mix(alone: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 5)
    with Sim(reasoning_parser="qwen3", latency="fixed:3") as sim:
        command = ("regen-run", "in.jsonl", "--out", "out", "--engine", sim.url)
        first = alone.start(*command)
        kit.wait_until((tmp_path / "out" / ".lock").exists, within_s=20, what="its lock")
        assert "another regen-run" in alone.run(*command, code=2).err
        assert first.wait(60) == 0, first.said


def test_failed_prompts_are_said_and_can_go_round_again(alone: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 20)
    with Sim(reasoning_parser="qwen3") as sim:
        sim.faults(context_length={"marker": "question 7"})
        command = ("regen-run", "in.jsonl", "--out", "out", "--engine", sim.url)
        ended = alone.run(*command, code=1)
        assert "1 prompt failed" in ended.err
        assert "context_length" in ended.out
        sim.heal()
        alone.run(*command, "--retry-failed")
    check(tmp_path / "out", 20)


def test_a_run_that_halts_itself_says_why_and_can_go_on(alone: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 700)
    with Sim(reasoning_parser="qwen3", latency="fixed:0.02") as sim:
        sim.faults(trivial={"rate": 0.9})
        command = ("regen-run", "in.jsonl", "--out", "out", "--engine", sim.url)
        ended = alone.run(*command, code=1)
        assert "halted itself" in ended.err
        assert "--resume" in ended.err
        sim.heal()
        alone.run(*command, "--resume", within_s=90)
    check(tmp_path / "out", 700)


def test_an_input_cut_short_is_said_before_anything_is_asked(
    alone: kit.Node, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 3)
    rows = (tmp_path / "in.jsonl").read_bytes().rstrip(b"\n").replace(b"\n", b",")
    (tmp_path / "cut.json").write_bytes(b"[" + rows[:-20])
    with Sim(reasoning_parser="qwen3") as sim:
        command = ("regen-run", "cut.json", "--out", "out", "--engine", sim.url)
        assert "--allow-truncated" in alone.run(*command, code=1).err
        assert sim.stats()["requests"] == 0
        alone.run(*command, "--allow-truncated")
    check(tmp_path / "out", 2)


def test_the_demo_runs_a_real_model_and_resumes(alone: kit.Node, tmp_path: Path) -> None:
    """Real rows, real llama.cpp, small: eight prompts of eight tokens, stopped on the way."""
    command = ("regen-run", "--demo", "--out", "demo-out", "--limit", "8", "--max-tokens", "8")
    first = alone.start(*command)
    log = tmp_path / "demo-out" / "logs" / "consumer-0.log"
    kit.wait_until(
        lambda: log.exists() and "claims" in log.read_text(), within_s=120, what="a claim"
    )
    os.kill(first.popen.pid, signal.SIGINT)
    assert first.wait(60) == 130, first.said
    ended = alone.run(*command, within_s=300)
    check(tmp_path / "demo-out", 8)
    found = helpers.read_batches(tmp_path / "demo-out")
    assert all(record["completion"]["content"] for record in found)
    assert {record["engine"]["kind"] for record in found} == {"openai"}
    assert all(record["usage"]["completion_tokens"] <= 8 for record in found)
    assert "input_cut" in first.said  # the real rows' file is cut in mid-string
    assert "One of them" in ended.out
    kit.wait_until(lambda: not processes_in(tmp_path), within_s=20, what="no process left")
