"""The intent: the immutable decision to write one batch, and when it may be carried out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from regen_common.queue import shapes

SETTLE_S: Final = 5.0
"""Age before a PUT, by Redis' clock. With ``appendfsync everysec`` Redis may lose its last seconds
and with them the decision; an object written for a decision that is lost would stand twice."""

SUFFIXES: Final = {"zstd": ".jsonl.zst", "gzip": ".jsonl.gz", "none": ".jsonl"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """``first`` (not included) to ``last`` (included) are stream ids; ``bytes`` uncompressed."""

    name: str
    first: str
    last: str
    count: int
    codec: str
    to: str
    bytes: int
    at: float
    epoch: str

    @property
    def sha16(self) -> str:
        """The first 16 hex digits of the sha256 of the uncompressed content."""
        return self.name.partition(".")[0].rpartition("-")[2]


def parse(name: str, text: bytes | str) -> Intent:
    return Intent(name=name, **orjson.loads(text))


def object_name(entries: Sequence[shapes.Entry], *, sha256: str, codec: str) -> str:
    """``{ms:013d}-{seq:06d}-{sha256, 16 hex}.jsonl.zst``: from the first record's stream id."""
    ms, _, seq = entries[0].stream_id.partition("-")
    return f"{int(ms):013d}-{int(seq):06d}-{sha256[:16]}{SUFFIXES[codec]}"


def content(entries: Sequence[shapes.Entry]) -> bytes:
    """A batch before compression: one line per record."""
    return b"".join(entry.body + b"\n" for entry in entries)


def hindrance(
    intent: Intent,
    *,
    still_open: bool,
    redis_time_s: float,
    aof_ok: bool,
    manifest_epoch: str,
) -> str | None:
    """Why this intent must not be PUT now, all of it just read again; ``None`` when it may."""
    if not still_open:
        return "gone"
    if manifest_epoch != intent.epoch:
        return "epoch"
    if not aof_ok:
        return "aof"
    if redis_time_s - intent.at < SETTLE_S:
        return "young"
    return None
