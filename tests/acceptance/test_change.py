"""Changes in mid-run reach the next request."""

from pathlib import Path

import acceptance_kit as kit
import helpers
from regen_sim.process import Sim


def test_a_new_cap_reaches_the_next_request(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 200)
    node.run("regen-produce", "in.jsonl", "--to", "out", "--max-tokens", "300")
    with Sim(reasoning_parser="qwen3", latency="fixed:0.5", max_running=10) as sim:
        consumer = node.start(
            "regen-consume", "--gpu", "0", "--engine", sim.url, "--concurrency", "10", "--burst"
        )
        kit.wait_until(lambda: sim.stats()["completed"] > 20, within_s=30, what="some answers")
        node.run("regen-config", "set", "max_tokens=400", "sampling.temperature=0.5")
        assert consumer.wait(60) == 0, consumer.said
        sink = node.start("regen-sink", "--burst")
        assert sink.wait(60) == 0, sink.said
    found = sorted(helpers.read_batches(tmp_path / "out"), key=lambda r: r["started_at"])
    caps = [record["sampling"]["max_tokens"] for record in found]
    assert set(caps) == {300, 400}
    assert caps == sorted(caps)  # none after the change is cut at the old cap
    assert [record["sampling"]["temperature"] == 0.5 for record in found] == [
        cap == 400 for cap in caps
    ]


def test_another_model_is_refused_unless_allowed(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 10)
    node.run("regen-produce", "in.jsonl", "--to", "out", "--limit", "5")
    with Sim(reasoning_parser="qwen3", model="right") as sim:
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        assert consumer.wait(60) == 0, consumer.said
    node.run("regen-produce", "in.jsonl")
    words = ("regen-consume", "--gpu", "0", "--burst", "--engine")
    with Sim(reasoning_parser="qwen3", model="wrong") as sim:
        ended = node.run(*words, sim.url, code=2)
        (line,) = [line for line in ended.err.splitlines() if ": error: " in line]
        assert "'wrong'" in line
        assert "'right'" in line
        assert "--allow-model-change" in line
        assert node.totals()["failed"] == 0
        node.run(*words, sim.url, "--allow-model-change")
    backlog = node.status()["backlog"]
    assert backlog["records"] == 10
    assert 0 <= backlog["oldest_s"] < 60
