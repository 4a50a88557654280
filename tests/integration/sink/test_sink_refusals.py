"""A sink whose Redis and destination do not belong together refuses, before it writes anything."""

from pathlib import Path

import pytest
import redis

import helpers
from regen_common import errors
from regen_common.clock import SystemClock
from regen_common.objects import open_objects
from regen_common.run import manifest, opening
from regen_consumer.sink import cutting
from regen_consumer.sink.sink import Sink

LIMITS = cutting.Limits(records=10, bytes=1 << 20, age_s=60)


def open_sink(opened: opening.OpenRun, folder: Path) -> Sink:
    sink = Sink(opened, open_objects(str(folder)), limits=LIMITS, codec="zstd", clock=SystemClock())
    sink.open()
    return sink


def test_another_input_at_the_destination(client: redis.Redis, tmp_path: Path) -> None:
    open_sink(helpers.make_run(client, size=3), tmp_path).close()
    client.flushall()
    other = helpers.make_run(client, size=3, input_fingerprint="0" * 64)
    with pytest.raises(errors.RunMismatchError, match="another input"):
        open_sink(other, tmp_path)


def test_another_epoch_at_the_destination(client: redis.Redis, tmp_path: Path) -> None:
    opened = helpers.make_run(client, size=3)
    open_sink(opened, tmp_path).close()
    client.set(opened.keys.epoch, "e1")
    again = opening.OpenRun(
        client=client,
        keys=opened.keys,
        config=opening.config.load(client, "regen"),
        queue=opened.queue,
    )
    with pytest.raises(errors.RunMismatchError, match="epoch"):
        open_sink(again, tmp_path)


def test_batches_that_the_ledger_does_not_know(client: redis.Redis, tmp_path: Path) -> None:
    opened = helpers.make_run(client, size=3)
    open_sink(opened, tmp_path).close()
    name = manifest.batches_prefix("regen") + "0000000000001-000000-00.jsonl"
    open_objects(str(tmp_path)).put_new(name, b"{}\n", sha256="00")
    with pytest.raises(errors.RunMismatchError, match="restored from an older copy"):
        open_sink(opened, tmp_path)


def test_a_sink_of_an_older_epoch_stops_before_it_writes(
    client: redis.Redis, tmp_path: Path
) -> None:
    opened = helpers.make_run(client, size=3)
    sink = open_sink(opened, tmp_path)
    helpers.answer(opened, [0, 1, 2])
    client.set(opened.keys.epoch, "e1")
    with pytest.raises(errors.WrongEpochError):
        sink.step(flush=True)
    assert helpers.read_batches(tmp_path) == []
