"""One consumer against an imitated engine on this machine: answers per second, CPU, slots in use.

``python bench/consumer.py 0 5000 40``: seconds an answer takes (0: as fast as it goes), prompts,
slots. Consumer, imitation, Valkey and sink share the machine's cores. Slots in use: the time that
answers took, over slots times the time, both from the first question to the last question.
"""

import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import orjson
import zstandard

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import acceptance_kit as kit
from regen_sim.process import Sim
from servers.valkey import Valkey


def spans(folder):
    """(begin, end) of each answer, in seconds since the epoch."""
    for path in (folder / "out" / "regen" / "batches").iterdir():
        for line in zstandard.decompress(path.read_bytes()).splitlines():
            record = orjson.loads(line)
            begin_s = datetime.fromisoformat(record["started_at"]).timestamp()
            yield begin_s, begin_s + record["latency_s"]


def main(latency, prompts, slots):
    with (
        tempfile.TemporaryDirectory() as name,
        Valkey() as server,
        Sim(reasoning_parser="qwen3", think_open=True, latency=latency, max_running=2048) as sim,
        kit.node(Path(name), server.url) as node,
    ):
        folder = Path(name)
        kit.write_prompts(folder / "in.jsonl", prompts)
        node.run("regen-produce", "in.jsonl", "--to", str(folder / "out"), within_s=120)
        node.start("regen-sink", "--burst")
        words = ("regen-consume", "--gpu", "0", "--engine", sim.url)
        consumer = node.start(*words, "--concurrency", str(slots), "--burst")
        _, status, used = os.wait4(consumer.popen.pid, 0)
        consumer.popen.returncode = status
        assert status == 0, consumer.said
        kit.wait_until(
            lambda: node.totals()["done"] == prompts, within_s=60, what="all answers written"
        )
        found = list(spans(folder))
    took_s = max(end for _, end in found) - min(begin for begin, _ in found)
    asked_s = max(begin for begin, _ in found)
    busy_s = sum(min(end, asked_s) - begin for begin, end in found)
    busy = busy_s / (slots * (asked_s - min(begin for begin, _ in found)))
    cpu_ms = (used.ru_utime + used.ru_stime) / prompts * 1e3
    print(
        f"consumer, {slots} slots, {latency} s an answer: {prompts / took_s:,.0f} answers/s, "
        f"{cpu_ms:.2f} ms CPU an answer, {busy:.1%} of the slots in use"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
