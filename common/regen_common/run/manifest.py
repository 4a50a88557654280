"""``{prefix}/{run}/manifest.json``: what the destination knows of the run without Redis.

Whoever writes to the destination first compares it with Redis: another epoch or input, or batches
that the ledger does not know, mean that Redis was lost or restored from an older backup, and going
on would ask for answers again that are there.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from regen_common import errors
from regen_common.objects import Objects

MANIFEST_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """``counts`` are the books in prompts; ``batches`` and ``bytes`` what the ledger knew."""

    version: int
    run: str
    epoch: str
    input_fingerprint: str
    configuration: dict[str, Any]
    history: list[dict[str, Any]]
    engines: list[dict[str, Any]]
    counts: dict[str, int]
    batches: int
    bytes: int
    updated_at: str


def name(run: str) -> str:
    return f"{run}/manifest.json"


def batches_prefix(run: str) -> str:
    return f"{run}/batches/"


def read(objects: Objects, run: str) -> Manifest | None:
    """The manifest, or ``None`` where there is none.

    Raises :class:`regen_common.errors.DestinationError` when it can't be understood.
    """
    raw = objects.get(name(run))
    if raw is None:
        return None
    try:
        manifest = Manifest(**orjson.loads(raw))
    except (ValueError, TypeError) as cause:
        raise errors.DestinationError(
            f"{objects.url}/{name(run)} is damaged: {cause}; move it away to have it written anew"
        ) from cause
    if manifest.version != MANIFEST_VERSION:
        raise errors.RunMismatchError(
            f"{objects.url}/{name(run)} is of version {manifest.version}; "
            "use the Regen that wrote it"
        )
    return manifest


def write(objects: Objects, manifest: Manifest) -> None:
    objects.put(name(manifest.run), orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2))


def check_same_life(manifest: Manifest, *, epoch: str, fingerprint: str, where: str) -> None:
    """Refuse a destination that belongs to another input, or another life of this run.

    Raises :class:`regen_common.errors.RunMismatchError`.
    """
    if manifest.input_fingerprint != fingerprint:
        raise errors.RunMismatchError(
            f"{where} holds run {manifest.run!r} of another input "
            f"({manifest.input_fingerprint[:16]}, here {fingerprint[:16]}); "
            "use another --run or another destination"
        )
    if manifest.epoch != epoch:
        raise errors.RunMismatchError(
            f"{where} holds {manifest.batches} batches of run {manifest.run!r} that this Redis "
            f"does not know (epoch {manifest.epoch}, here {epoch}): Redis was emptied or restored "
            "from an older copy; restore the newest one, or use another --run"
        )
