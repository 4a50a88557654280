"""Where one ``regen-run`` keeps what, so that the same command finds it again."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regen_common import errors


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """``home`` is OUT itself where that is a folder, else ``./regen-data/{run}``."""

    home: Path
    destination: str

    @property
    def redis(self) -> Path:
        return self.home / "redis"

    @property
    def store(self) -> Path:
        return self.home / "store"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def demo_input(self) -> Path:
        return self.home / "demo-input.jsonl"

    @property
    def demo_dump(self) -> Path:
        return self.home / "demo-sharegpt.jsonl"


def layout(out: str, run: str) -> Layout:
    """Folders for ``--out OUT``. S3 gets the batches only; the rest stays on this machine."""
    if out.startswith("s3://"):
        return Layout(home=Path("regen-data", run).absolute(), destination=out)
    home = Path(out.removeprefix("file://")).expanduser().absolute()
    return Layout(home=home, destination=str(home))


@contextlib.contextmanager
def exclusive(where: Layout) -> Iterator[None]:
    """Make the folders, and keep a second regen-run out of them.

    Raises :class:`regen_common.errors.UsageError` when another holds them or they can't be made.
    """
    try:
        for folder in (where.home, where.redis, where.logs):
            folder.mkdir(parents=True, exist_ok=True)
        where.redis.chmod(0o700)
        descriptor = os.open(where.home / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as cause:
        raise errors.UsageError(f"--out {where.home}: {cause.strerror}") from cause
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as cause:
        os.close(descriptor)
        raise errors.UsageError(
            f"another regen-run works in {where.home}; wait for it, or use another --out"
        ) from cause
    try:
        yield
    finally:
        os.close(descriptor)
