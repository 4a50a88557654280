"""One prompt with its answer out of the batches, to be looked at."""

import gzip
import itertools
from typing import Any, Final

import orjson
import zstandard

from regen_common.objects import Objects
from regen_common.run import manifest

BATCHES_MAX: Final = 20


def records(name: str, body: bytes) -> list[dict[str, Any]]:
    """The records of a batch, by the codec that its name tells."""
    if name.endswith(".zst"):
        body = zstandard.ZstdDecompressor().decompress(body)
    elif name.endswith(".gz"):
        body = gzip.decompress(body)
    return [orjson.loads(line) for line in body.split(b"\n") if line]


def first(objects: Objects, run: str) -> dict[str, Any] | None:
    """A record whose answer carries no label if the first batches have one, else any."""
    fallback = None
    for info in itertools.islice(objects.list(manifest.batches_prefix(run)), BATCHES_MAX):
        body = objects.get(info.name)
        for record in records(info.name, body) if body else []:
            if not record["quality"]:
                return record
            fallback = fallback or record
    return fallback
