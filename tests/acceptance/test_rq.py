"""RQ for real: its stock commands, without serializer flags, against our queues and workers."""

from pathlib import Path

import redis as redis_py
from rq.job import Job

import acceptance_kit as kit
import helpers
from regen_common.run import keys
from regen_sim.process import Sim
from servers.valkey import Valkey


def test_a_refused_prompt_is_failed_and_rq_requeue_brings_it_through(
    node: kit.Node, redis: Valkey, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 20)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    with Sim(reasoning_parser="qwen3") as sim:
        sim.faults(context_length={"marker": "question 7"})
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        assert consumer.wait(60) == 0, consumer.said
        info = node.run("rq", "info", "-u", redis.url).out
        assert "1 failed" in info
        (failure,) = node.status()["failures"]
        assert (failure["class"], failure["count"], failure["indices"]) == (
            "context_length",
            1,
            [7],
        )
        assert "longer than the model's context length" in failure["detail"]

        client = redis.client()
        job = Job.fetch("regen-7", connection=client)
        result = job.latest_result()
        assert result is not None
        assert "context_length" in str(result.exc_string)
        client.close()

        sim.heal()
        node.run("rq", "requeue", "--queue", "regen-chat", "--all", "-u", redis.url)
        assert node.totals()["failed"] == 0
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        sink = node.start("regen-sink", "--burst")
        assert consumer.wait(60) == 0, consumer.said
        assert sink.wait(60) == 0, sink.said
    assert helpers.times_each(helpers.read_batches(tmp_path / "out")) == dict.fromkeys(range(20), 1)
    assert node.status()["failures"] == []


def test_regen_requeue_sends_one_class_round_again(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 20)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    with Sim(reasoning_parser="qwen3") as sim:
        sim.faults(context_length={"marker": "question 7"}, template={"marker": "question 8"})
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        assert consumer.wait(60) == 0, consumer.said
    assert {f["class"]: f["count"] for f in node.status()["failures"]} == {
        "context_length": 1,
        "template": 1,
    }
    assert "1 prompts would go" in node.run("regen-requeue", "--class", "template", "--dry-run").out
    assert "1 prompts sent" in node.run("regen-requeue", "--class", "template").out
    assert node.totals()["failed"] == 1
    assert "1 prompts sent" in node.run("regen-requeue", "--failed").out
    assert node.totals() | {"pending": 20, "failed": 0} == node.totals()  # 18 in the stream


def test_rq_suspend_pauses_and_rq_resume_goes_on(
    node: kit.Node, redis: Valkey, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 400)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    with Sim(reasoning_parser="qwen3", latency="fixed:0.3") as sim:
        node.run("rq", "suspend", "-u", redis.url)
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        kit.wait_until(
            lambda: "suspended" in node.run("rq", "info", "-u", redis.url).out,
            within_s=30,
            what="a suspended worker in rq info",
        )
        assert node.status()["state"] == "suspended"
        assert sim.stats()["requests"] <= 1  # the preflight's probe
        node.run("rq", "resume", "-u", redis.url)
        assert consumer.wait(60) == 0, consumer.said
    assert node.status()["backlog"]["records"] == 400


def test_a_job_deleted_by_hand_is_seen_and_comes_back(
    node: kit.Node, redis: Valkey, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 10)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    client = redis.client()
    Job.fetch("regen-4", connection=client).delete()
    assert node.totals()["unaccounted"] == 1
    assert node.status()["concerns"][0]["id"] == "unaccounted"

    node.run("regen-produce", "in.jsonl", "--to", "out")
    assert node.totals()["unaccounted"] == 0

    Job.fetch("regen-5", connection=client).delete()
    client.close()
    with Sim(reasoning_parser="qwen3") as sim:
        consumer = node.start("regen-consume", "--gpu", "0", "--engine", sim.url)
        kit.wait_until(
            lambda: node.status()["backlog"]["records"] == 10, within_s=40, what="all ten answered"
        )
        assert node.totals()["unaccounted"] == 0
        node.run("rq", "info", "-u", redis.url)
        consumer.kill()


def test_rq_stops_a_worker_and_a_job(node: kit.Node, redis: Valkey, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 5)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    client = redis.client()
    with Sim(reasoning_parser="qwen3", latency="fixed:600") as sim:
        sim.faults(slow={"seconds": 0, "marker": "Say hi."})
        consumer = node.start(
            "regen-consume", "--gpu", "0", "--engine", sim.url, "--grace", "0", "--lease", "5"
        )
        kit.wait_until(lambda: sim.stats()["running"] == 5, within_s=30, what="all in flight")
        send_stop(client, 3)
        kit.wait_until(
            lambda: [f["class"] for f in node.status()["failures"]] == ["stopped"],
            within_s=15,
            what="the stopped prompt among the failures",
        )
        kit.wait_until(lambda: sim.stats()["running"] == 4, within_s=15, what="its request aborted")
        (worker,) = client.smembers("rq:workers")
        shut_down(client, worker.decode().removeprefix("rq:worker:"))
        assert consumer.wait(20) == 0, consumer.said
    assert [job.decode() for job in client.lrange("rq:queue:regen-chat", 0, -1)] == [
        keys.Keys(run="regen").job_id(index) for index in (0, 1, 2, 4)
    ]
    client.close()


def send_stop(client: redis_py.Redis, index: int) -> None:
    from rq.command import send_stop_job_command

    send_stop_job_command(client, f"regen-{index}")


def shut_down(client: redis_py.Redis, worker: str) -> None:
    from rq.command import send_shutdown_command

    send_shutdown_command(client, worker)
