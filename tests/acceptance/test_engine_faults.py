"""Engines that are away, die, refuse, cut and hang: no prompt is lost to them, none is failed."""

import signal

import pytest

import acceptance_kit as kit
from regen_sim.process import Sim

N = 60


def produced(node: kit.Node, n: int = N) -> None:
    kit.write_prompts(node.folder / "in.jsonl", n)
    node.run("regen-produce", "in.jsonl", "--to", "out")


def all_answered(node: kit.Node, n: int = N, within_s: float = 60) -> None:
    kit.wait_until(
        lambda: node.status()["backlog"]["records"] == n, within_s=within_s, what=f"{n} answers"
    )
    assert node.totals()["failed"] == 0


def test_an_engine_that_is_not_there_is_waited_for_with_a_clear_line(node: kit.Node) -> None:
    produced(node)
    with Sim(reasoning_parser="qwen3") as sim:
        sim.kill()
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url)
        kit.wait_until(
            lambda: "engine_waited_for" in consumer.said, within_s=20, what="a line about it"
        )
        (gpu,) = node.status()["gpus"]
        assert gpu["state"] == "engine waiting"
        sim.start()
        all_answered(node)
        consumer.kill()


def test_an_engine_killed_on_the_way_costs_no_prompt(node: kit.Node) -> None:
    produced(node)
    with Sim(reasoning_parser="qwen3", latency="fixed:1") as sim:
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url)
        kit.wait_until(lambda: sim.stats()["running"] >= 40, within_s=30, what="40 in flight")
        sim.kill()
        kit.wait_until(lambda: "engine_lost" in consumer.said, within_s=20, what="the loss noticed")
        kit.wait_until(
            lambda: node.status()["places"]["queued"] >= 40, within_s=20, what="leases back"
        )
        sim.start()
        all_answered(node)
        consumer.kill()


def test_a_stuck_engine_is_given_up_and_asked_again(node: kit.Node) -> None:
    """It accepts, never answers, and its health check says that all is well."""
    produced(node)
    with Sim(reasoning_parser="qwen3", latency="fixed:0.5") as sim:
        consumer = node.start(
            "regen-consume", "--gpu", "0", "--engine", sim.url, "--stall", "3", "--lease", "5"
        )
        kit.wait_until(lambda: sim.stats()["running"] >= 40, within_s=30, what="40 in flight")
        sim.faults(freeze=True)
        kit.wait_until(lambda: "stalled" in consumer.said, within_s=30, what="the stall noticed")
        kit.wait_until(
            lambda: node.status()["places"]["leased"] == 0, within_s=20, what="leases back"
        )
        sim.heal()
        all_answered(node)
        consumer.kill()


def test_a_long_answer_is_one_request(node: kit.Node) -> None:
    """Longer than the stall limit and the lease, with counters that move."""
    produced(node, 3)
    with Sim(reasoning_parser="qwen3", latency="fixed:12") as sim:
        sim.faults(slow={"seconds": 0, "marker": "Say hi."})
        consumer = node.start(
            "regen-consume", "--gpu", "0", "--engine", sim.url, "--stall", "4", "--lease", "4",
            "--burst",
        )  # fmt: skip
        assert consumer.wait(60) == 0, consumer.said
        assert sorted(sim.stats()["digests"].values()) == [1, 1, 1, 1]  # and the probe
    all_answered(node, 3)


def test_a_full_queue_is_waited_for_uncharged(node: kit.Node) -> None:
    produced(node)
    with Sim(reasoning_parser="qwen3", latency="fixed:0.2", max_running=5, max_queued=5) as sim:
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        assert consumer.wait(90) == 0, consumer.said
        assert sim.stats()["statuses"].get("503", 0) > 0
    all_answered(node)


def test_cut_connections_of_a_healthy_engine_are_asked_again_and_then_fail(
    node: kit.Node,
) -> None:
    produced(node, 10)
    with Sim(reasoning_parser="qwen3") as sim:
        sim.faults(
            cut_before={"marker": "question 1", "per_prompt": 1},
            cut_body={"marker": "question 2"},
            invalid_json={"marker": "question 3", "per_prompt": 2},
        )
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        assert consumer.wait(120) == 0, consumer.said
    (failure,) = node.status()["failures"]
    assert (failure["class"], failure["indices"]) == ("cut", [2])
    assert node.status()["backlog"]["records"] == 9


def test_a_wrong_key_stops_the_consumer_and_charges_nobody(node: kit.Node) -> None:
    produced(node, 5)
    with Sim(reasoning_parser="qwen3", api_key="right-key-1234") as sim:
        ended = node.run(
            "regen-consume", "--gpu", "0", "--engine", sim.url, "--api-key", "wrong-key-1234",
            code=2,
        )  # fmt: skip
        assert len(ended.err.strip().splitlines()[-1]) < 300
        assert "wrong-key-1234" not in ended.err
        assert node.totals() | {"pending": 5, "failed": 0} == node.totals()
        consumer = node.start(
            "regen-consume", "--gpu", "0", "--engine", sim.url, "--api-key", "right-key-1234",
            "--burst",
        )  # fmt: skip
        assert consumer.wait(60) == 0, consumer.said
    all_answered(node, 5)


@pytest.mark.parametrize(("grace", "signals"), [("1", 1), ("600", 2)])
def test_sigterm_gives_the_rest_back_in_order(node: kit.Node, grace: str, signals: int) -> None:
    produced(node, 50)
    with Sim(reasoning_parser="qwen3", latency="fixed:600") as sim:
        sim.faults(slow={"seconds": 0, "marker": "Say hi."})
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--grace", grace)
        kit.wait_until(lambda: sim.stats()["running"] == 40, within_s=30, what="40 in flight")
        for n in range(signals):
            consumer.signal(signal.SIGTERM)
            kit.wait_until(
                lambda: "consumer_leaving" in consumer.said, within_s=10, what=f"signal {n} heard"
            )
        assert consumer.wait(20) == 0, consumer.said
        kit.wait_until(lambda: not sim.stats()["running"], within_s=10, what="all aborted")
    opened = kit.redis_of(node)
    queued = [job.decode() for job in opened.lrange("rq:queue:regen-chat", 0, -1)]
    assert queued == [f"regen-{index}" for index in range(50)]
    opened.close()
