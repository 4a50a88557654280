"""One prompt with its answer out of the batches, to be looked at."""

import gzip
from typing import Any

import orjson
import zstandard

from regen_common.objects import Objects
from regen_common.run import manifest


def records(name: str, body: bytes) -> list[dict[str, Any]]:
    """The records of a batch, by the codec that its name tells."""
    if name.endswith(".zst"):
        body = zstandard.ZstdDecompressor().decompress(body)
    elif name.endswith(".gz"):
        body = gzip.decompress(body)
    return [orjson.loads(line) for line in body.split(b"\n") if line]


def first(objects: Objects, run: str) -> dict[str, Any] | None:
    """A record whose answer carries no label if there is one in the first batch, else any."""
    for info in objects.list(manifest.batches_prefix(run)):
        body = objects.get(info.name)
        found = records(info.name, body) if body else []
        if found:
            return next((record for record in found if not record["quality"]), found[0])
    return None
