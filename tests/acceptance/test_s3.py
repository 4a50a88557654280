"""The sink into a real S3 protocol server."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import acceptance_kit as kit
import helpers
from regen_sim.process import Sim
from servers.valkey import Valkey
from servers.weed import Weed

N = 300


@pytest.fixture(scope="module")
def weed() -> Iterator[Weed]:
    with Weed() as server:
        server.create_bucket("drafts")
        yield server


@pytest.fixture
def s3_node(tmp_path: Path, redis: Valkey, weed: Weed) -> Iterator[kit.Node]:
    with kit.node(tmp_path, redis.url, **weed.env()) as found:
        yield found


def records(weed: Weed, prefix: str) -> list[dict[str, object]]:
    client = weed.client()
    out = []
    listed = client.list_objects_v2(Bucket="drafts", Prefix=f"{prefix}/regen/batches/")
    for found in listed.get("Contents", []):
        body = client.get_object(Bucket="drafts", Key=found["Key"])["Body"].read()
        content = helpers.decompress(found["Key"], body)
        out += [orjson.loads(line) for line in content[:-1].split(b"\n")]
    return out


def test_answers_arrive_once_each_through_killed_sinks(
    s3_node: kit.Node, weed: Weed, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", N)
    s3_node.run("regen-produce", "in.jsonl", "--to", "s3://drafts/run-a")
    with Sim(reasoning_parser="qwen3", latency="fixed:0.2") as sim:
        consumer = s3_node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        sinks = []
        for batches in (1, 3):
            sink = s3_node.start("regen-sink", "--batch-records", "20")
            kit.wait_until(
                lambda wanted=batches: s3_node.status()["batches"]["count"] >= wanted,
                within_s=60,
                what=f"{batches} batches",
            )
            sink.kill()
            sinks.append(sink)
        assert consumer.wait(60) == 0, consumer.said
    last = s3_node.start("regen-sink", "--batch-records", "50", "--compress", "gzip", "--burst")
    assert last.wait(90) == 0, last.said
    found = records(weed, "run-a")
    assert Counter(record["index"] for record in found) == Counter(range(N))
    manifest = weed.client().get_object(Bucket="drafts", Key="run-a/regen/manifest.json")
    tree = orjson.loads(manifest["Body"].read())
    assert tree["counts"] == {"input": N, "done": N, "failed": 0, "rejected": 0, "pending": 0}
    assert tree["batches"] == s3_node.status()["batches"]["count"]
    assert [engine["kind"] for engine in tree["engines"]] == ["sglang"]
    secret = weed.env()["AWS_SECRET_ACCESS_KEY"]
    assert all(secret not in process.said for process in [*sinks, last, consumer])


def test_a_missing_bucket_is_said_at_once(s3_node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    s3_node.run("regen-produce", "in.jsonl")
    ended = s3_node.run("regen-sink", "--to", "s3://no-such-bucket/x", code=2)
    (line,) = [line for line in ended.err.splitlines() if ": error: " in line]
    assert "no-such-bucket" in line
    assert "Traceback" not in ended.err
    assert s3_node.run("regen-config", "get", "destination").out.split()[:2] == [
        "destination",
        "null",
    ]


def test_a_lost_redis_is_noticed_before_anything_is_asked_again(
    s3_node: kit.Node, redis: Valkey, weed: Weed, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 10)
    s3_node.run("regen-produce", "in.jsonl", "--to", "s3://drafts/run-b")
    with Sim(reasoning_parser="qwen3") as sim:
        consumer = s3_node.start("regen-consume", "--gpu", "0", "--engine", sim.url, "--burst")
        sink = s3_node.start("regen-sink", "--burst")
        assert consumer.wait(60) == 0, consumer.said
        assert sink.wait(60) == 0, sink.said
    client = redis.client()
    client.flushall()
    client.close()
    ended = s3_node.run("regen-produce", "in.jsonl", "--to", "s3://drafts/run-b", code=2)
    assert "does not know" in ended.err
    assert "no run" in s3_node.run("regen-status", code=2).err
