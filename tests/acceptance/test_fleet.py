"""Two thousand prompts, seven consumers of forty slots, and kill -9 all along the way."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import acceptance_kit as kit
import helpers
from regen_common.queue import transitions
from regen_common.run import books, opening
from regen_sim.answers import expected
from regen_sim.process import Sim
from servers.valkey import Valkey

PROMPTS = 2_000
TOOLS = 250
GPUS = 7
LEASE_S = 4


class BooksWatch(threading.Thread):
    """Counts the books all the time, and keeps every moment in which they did not balance."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._run = opening.open_run(url, "regen", allow_volatile=False)
        self._over = threading.Event()
        self.looks = 0
        self.unbalanced: list[books.Books] = []

    def run(self) -> None:
        while not self._over.wait(0.02):
            found = books.from_counted(self._run.queue.execute(transitions.books()))
            self.looks += 1
            if found.unaccounted != 0:
                self.unbalanced.append(found)

    def end(self) -> None:
        self._over.set()
        self.join()


@pytest.fixture
def engines() -> Iterator[list[Sim]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                Sim(reasoning_parser="qwen3", think_open=True, latency="lognormal:0.6:0.7")
            )
            for _ in range(GPUS)
        ]


def consume(node: kit.Node, gpu: int, url: str) -> kit.Process:
    return node.start(
        "regen-consume", "--gpu", str(gpu), "--engine", url, "--lease", str(LEASE_S), "--burst"
    )


def check_records(found: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Every index once, each with the answer to its own prompt."""
    assert helpers.times_each(found) == Counter(range(PROMPTS))
    for record in found:
        asked = rows[record["index"]]["conversations"][0]["value"]
        assert record["messages"] == [{"role": "user", "content": asked}]
        answer = expected(record["messages"], record["tools"])
        completion = record["completion"]
        assert (completion["reasoning"], completion["content"]) == (
            answer.reasoning,
            answer.content,
        )
        assert (record["category"] == "tools") == (record["index"] >= PROMPTS - TOOLS)


def test_kills_on_the_way_lose_and_double_nothing(
    node: kit.Node, redis: Valkey, engines: list[Sim], tmp_path: Path
) -> None:
    rows = kit.write_prompts(tmp_path / "in.jsonl", PROMPTS, tools_last=TOOLS)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    watch = BooksWatch(redis.url)
    watch.start()
    consumers = [consume(node, gpu, engine.url) for gpu, engine in enumerate(engines)]
    sink = node.start("regen-sink", "--batch-records", "100", "--burst")

    def answered(n: int) -> None:
        def enough() -> bool:
            totals = node.status()
            return totals["totals"]["done"] + totals["backlog"]["records"] >= n

        kit.wait_until(enough, within_s=90, what=f"{n} answers")

    info = kit.wait_until(
        lambda: (
            (found := node.run("rq", "info", "-u", redis.url).out).count("busy") >= GPUS and found
        ),
        within_s=30,
        what="seven busy workers in rq info",
    )
    assert f"{GPUS} workers" in info
    for n, victim in ((200, 0), (500, 1), (800, 2)):
        answered(n)
        consumers[victim].kill()
    sink.kill()
    engines[3].kill()
    sink = node.start("regen-sink", "--batch-records", "100", "--burst")
    answered(1_200)
    consumers[0] = consume(node, 0, engines[0].url)
    engines[3].start()

    for process in [*consumers[3:], consumers[0]]:
        assert process.wait(120) == 0, process.said
    assert sink.wait(60) == 0, sink.said
    watch.end()
    assert watch.looks > 100
    assert not watch.unbalanced, watch.unbalanced[:3]
    totals = node.totals()
    assert (totals["done"], totals["failed"], totals["unaccounted"]) == (PROMPTS, 0, 0)
    check_records(helpers.read_batches(tmp_path / "out"), rows)


def test_a_killed_consumers_prompts_go_to_others_in_time(
    node: kit.Node, redis: Valkey, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 30)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    with (
        Sim(reasoning_parser="qwen3", latency="fixed:600") as stuck,
        Sim(reasoning_parser="qwen3") as quick,
    ):
        stuck.faults(slow={"seconds": 0, "marker": "Say hi."})
        first = consume(node, 0, stuck.url)
        kit.wait_until(lambda: stuck.stats()["running"] >= 30, within_s=30, what="all in flight")
        first.kill()
        second = consume(node, 1, quick.url)
        assert second.wait(LEASE_S + 15) == 0, second.said
    client = redis.client()
    assert client.zcard("rq:failed:regen-chat") == 0
    assert node.status()["backlog"]["records"] == 30
    client.close()
