"""Temporary files of a directory destination: written whole and synced, or gone."""

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from regen_common.objects import names

TEMPORARY_AGE_S: Final = 3600
"""No temporary file in use is as old: a put ends within PUT_DEADLINE_S, or hangs in the kernel and
then only loses its temporary file, which is a transient error."""


def make_folder(folder: Path) -> None:
    """Make the folder and those above it, each synced into its parent."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in the folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def written(folder: Path, body: bytes) -> Iterator[Path]:
    """A temporary file in ``folder`` with ``body`` in it, on the disk; removed at the end."""
    path = folder / _new_name()
    try:
        with path.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        yield path
    finally:
        path.unlink(missing_ok=True)


def _new_name() -> str:
    place = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    return f"{names.TEMPORARY_START}{place}{names.TEMPORARY_END}"


def sweep(base: Path, *, now_s: float) -> None:
    """Remove what dead processes left behind: only ours, by name, and only the old."""
    # a reader may open a destination that it must not, or can't, write to
    with contextlib.suppress(OSError):
        for folder in (base, *base.glob(f"*/{names.TEMPORARY_FOLDER}")):
            for path in folder.glob(f"{names.TEMPORARY_START}*{names.TEMPORARY_END}"):
                if now_s - path.stat().st_mtime > TEMPORARY_AGE_S:
                    path.unlink(missing_ok=True)
