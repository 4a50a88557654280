"""Intake and enqueue of the producer: rows per second, peak memory, Redis memory per queued prompt.

``python bench/produce.py 200000``: rows of about 1.2 KB, one in eight with tools.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from servers.valkey import Valkey

TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]
PRODUCE = Path(sys.executable).with_name("regen-produce")


def write_rows(path, rows):
    with path.open("wb") as out:
        for i in range(rows):
            turns = [
                {"from": "human", "value": f"Question {i}: " + "what of this? " * 40},
                {"from": "gpt", "value": "An old answer. " * 35},
            ]
            row = {"id": f"row-{i}", "conversations": turns}
            out.write(orjson.dumps(row | ({"tools": TOOLS} if i % 8 == 7 else {})) + b"\n")


def produce(*arguments):
    """(seconds, peak bytes, stderr) of one regen-produce."""
    with tempfile.TemporaryFile() as log:
        began_s = time.perf_counter()
        child = subprocess.Popen([PRODUCE, *map(str, arguments)], stderr=log)
        _, status, used = os.wait4(child.pid, 0)
        took_s = time.perf_counter() - began_s
        log.seek(0)
        said = log.read().decode()
    assert status == 0, said
    return took_s, used.ru_maxrss * 1024, said


def of_day_s(said, event):
    hours, minutes, seconds = re.search(rf"T(\d+):(\d+):([\d.]+)Z info {event} ", said).groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def main(rows):
    with tempfile.TemporaryDirectory() as folder, Valkey() as server:
        path = Path(folder) / "rows.jsonl"
        write_rows(path, rows)
        client = server.client()
        dry_s, _, _ = produce(path, "--dry-run")
        before = client.info("memory")["used_memory"]
        run = ("--redis", server.url, "--store", f"{folder}/store", "--to", f"{folder}/out")
        full_s, peak_bytes, said = produce(path, *run)
        used = client.info("memory")["used_memory"] - before
        enqueue_s = of_day_s(said, "produced") - of_day_s(said, "input")
        into_store, queued = rows / (full_s - enqueue_s), rows / enqueue_s
        print(
            f"produce {rows:,} rows, {path.stat().st_size / rows / 1e3:.1f} KB each: "
            f"dry run {rows / dry_s:,.0f} rows/s, into the store {into_store:,.0f} rows/s, "
            f"enqueued {queued:,.0f} prompts/s, "
            f"peak {peak_bytes / 1e6:.0f} MB, Redis {used / rows:.0f} B per queued prompt"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
