"""What several tests need: a run in Redis without a producer, and reading a destination back."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import redis
import zstandard

from regen_common.queue import executor, scripts, shapes, transitions
from regen_common.run import config, keys, opening

MOVABLE_CLOCK = "local function now() return tonumber(redis.call('GET', 'test:now')) end"
FINGERPRINT = "f" * 64


def movable_sources() -> dict[str, str]:
    """All scripts, with the time that the test puts into ``test:now``."""
    return {name: scripts.source(name, clock=MOVABLE_CLOCK) for name in scripts.TRANSITIONS}


def make_run(
    client: redis.Redis,
    *,
    size: int,
    run: str = "regen",
    tools_from: int | None = None,
    sources: dict[str, str] | None = None,
    **values: Any,
) -> opening.OpenRun:
    """A run of ``size`` accepted prompts, as ``regen-produce`` would make it, nothing enqueued."""
    tools = 0 if tools_from is None else size - tools_from
    for index in range(size - tools, size):
        client.setbit(keys.Keys(run=run).bits("tools"), index, 1)
    fields = {"version": "1", "input": str(size), "rejected": "0"}
    fields |= {"plan:tools": str(tools), "plan:chat": str(size - tools)}
    fields |= config.to_fields({"input_fingerprint": FINGERPRINT, "store": "/nowhere", **values})
    queue = executor.Queue(client, run=run, epoch="e0", sources=sources)
    assert queue.execute(transitions.create(token="t", names=[], epoch="e0", config=fields)) == "ok"
    return opening.OpenRun(
        client=client, keys=keys.Keys(run=run), config=config.load(client, run), queue=queue
    )


def answer(
    opened: opening.OpenRun, indices: list[int], *, masks: dict[int, int] | None = None
) -> None:
    """Enqueue, claim and finish these prompts (all chat), in one go."""
    opened.queue.execute(transitions.enqueue(category="chat", indices=indices))
    claim = opened.queue.execute(
        transitions.claim(
            queues=[opened.keys.queue("chat")],
            n=len(indices),
            token=f"t{indices[0]}x",
            worker="w",
            lease_s=60,
        )
    )
    records = [
        shapes.Finished(
            lease=job.lease,
            round=job.round,
            mask=(masks or {}).get(job.lease.index, 0),
            output_tokens=10,
            latency_s=1.0,
            body=orjson.dumps(
                {"index": job.lease.index, "round": job.round, "text": f"answer {job.lease.index}"}
            ),
        )
        for job in claim.jobs
    ]
    opened.queue.execute(transitions.finish(worker="w", records=records))


def decompress(name: str, body: bytes) -> bytes:
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor().decompress(body)
    return gzip.decompress(body) if name.endswith(".gz") else body


def read_batches(folder: Path, run: str = "regen") -> list[dict[str, Any]]:
    """All records of all batches in a destination folder."""
    out = []
    for path in sorted((folder / run / "batches").glob("*.jsonl*")):
        content = decompress(path.name, path.read_bytes())
        assert content.endswith(b"\n")
        out += [orjson.loads(line) for line in content[:-1].split(b"\n")]
    return out


def times_each(records: list[dict[str, Any]]) -> Counter[int]:
    """How often each index occurs."""
    return Counter(record["index"] for record in records)
