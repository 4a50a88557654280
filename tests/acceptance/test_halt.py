"""The run raises its hand: worthless answers halt it, good ones do not."""

from pathlib import Path

import acceptance_kit as kit
from regen_sim.process import Sim


def test_87_percent_trivial_answers_halt_the_run_early(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 2_000)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    with Sim(reasoning_parser="qwen3", latency="fixed:0.02") as sim:
        sim.faults(trivial={"rate": 0.87})
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url)
        status = kit.wait_until(
            lambda: (found := node.status())["state"] == "halted" and found,
            within_s=60,
            what="the halt",
        )
        kit.wait_until(
            lambda: not sim.stats()["running"], within_s=20, what="what was in flight to end"
        )
        answers = node.status()["backlog"]["records"]
        assert 200 <= answers <= 600, answers
        (concern,) = [c for c in status["concerns"] if c["id"] == "halted"]
        assert "empty or trivial" in concern["evidence"]
        assert "regen-resume" in concern["command"]
        assert "empty or trivial" in node.run("regen-status").out

        sim.heal()
        assert "goes on" in node.run("regen-resume").out
        kit.wait_until(
            lambda: node.status()["backlog"]["records"] == 2_000, within_s=60, what="the rest"
        )
        assert node.status()["state"] != "halted"
        consumer.kill()


def test_a_healthy_run_does_not_halt(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1_000)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    with Sim(reasoning_parser="qwen3") as sim:
        sim.faults(trivial={"rate": 0.1})
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        assert consumer.wait(60) == 0, consumer.said
    status = node.status()
    assert status["state"] != "halted"
    assert status["backlog"]["records"] == 1_000
