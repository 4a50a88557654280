"""A folder as destination: created by link, so never overwritten, and synced to the disk."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from regen_common import errors
from regen_common.clock import Clock, SystemClock
from regen_common.objects import content, directory_errors, exclusive, names, temporary
from regen_common.objects.interface import JSON_LINES, PUT_DEADLINE_S, ObjectInfo


class DirectoryObjects:
    """See :class:`regen_common.objects.interface.Objects`.

    A body is written to a temporary file in ``{run}/tmp``, synced, and linked to its name; then
    the folder is synced. A crash at any moment leaves the whole object or nothing that is listed.
    """

    def __init__(self, folder: Path, *, clock: Clock | None = None) -> None:
        self._base = folder
        self._clock = clock or SystemClock()
        temporary.sweep(folder, now_s=self._clock.time_s())

    @property
    def url(self) -> str:
        return str(self._base)

    def __str__(self) -> str:
        return self.url

    def check(self) -> None:
        """Make the folder, and try in it what ``put_new`` needs of its file system."""
        with directory_errors.translated(self._base):
            temporary.make_folder(self._base)
            with (
                temporary.written(self._base, b"regen") as probe,
                temporary.written(self._base, b"regen") as target,
            ):
                target.unlink()
                exclusive.publish(probe, target)

    def put_new(
        self, name: str, body: bytes, *, sha256: str, content_type: str = JSON_LINES
    ) -> None:
        del content_type  # a file has none
        final = self._path(name)
        with directory_errors.translated(final):
            created = not final.exists() and self._create(name, final, body)
            stored = body if created else final.read_bytes()
            # also when another made it: it may not have come to its own sync yet
            temporary.sync_folder(final.parent)
        if not content.is_same(name, stored, body=body, sha256=sha256):
            raise errors.ObjectConflictError(
                f"{final} is there with other content, {len(stored):,} bytes; nothing was "
                "overwritten. Move it away if it is damaged or not this run's, then go on"
            )

    def put(self, name: str, body: bytes, *, content_type: str = "application/json") -> None:
        del content_type
        final = self._path(name)
        with directory_errors.translated(final), self._temporary(name, final, body) as path:
            path.replace(final)
            temporary.sync_folder(final.parent)

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        with directory_errors.translated(path), contextlib.suppress(FileNotFoundError):
            return path.read_bytes()
        return None

    def head(self, name: str) -> ObjectInfo | None:
        """Reads the whole file: its ``sha256`` is of what is there, not of what was meant."""
        path = self._path(name)
        stored = self.get(name)
        if stored is None:
            return None
        with directory_errors.translated(path):
            modified = path.stat().st_mtime
        sha256 = content.sha256_of(name, stored)
        return ObjectInfo(name=name, size=len(stored), sha256=sha256, modified=modified)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        folder = names.require_prefix(prefix).rpartition("/")[0]
        with directory_errors.translated(self._base / folder):
            for info in self._walk(folder):
                if info.name.startswith(prefix) and not names.is_temporary(info.name):
                    yield info

    def close(self) -> None:
        """Nothing is held open."""

    def _path(self, name: str) -> Path:
        return self._base / names.require_name(name)

    def _create(self, name: str, final: Path, body: bytes) -> bool:
        """Whether it was us who made it."""
        with self._temporary(name, final, body) as path:
            try:
                exclusive.publish(path, final)
            except FileExistsError:
                return False
        return True

    @contextlib.contextmanager
    def _temporary(self, name: str, final: Path, body: bytes) -> Iterator[Path]:
        until_s = self._clock.monotonic_s() + PUT_DEADLINE_S
        folder = self._base / names.temporary_folder(name)
        temporary.make_folder(folder)
        temporary.make_folder(final.parent)
        with temporary.written(folder, body) as path:
            if self._clock.monotonic_s() > until_s:
                raise errors.DestinationError(
                    f"{final} took more than {PUT_DEADLINE_S} s to write; see whether the disk is "
                    "well, the write is tried again"
                )
            yield path

    def _walk(self, folder: str) -> Iterator[ObjectInfo]:
        """Everything below, in order of the whole names: a folder sorts as ``name/``."""
        for entry in _sorted_entries(self._base / folder):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(name)
            elif entry.is_file():
                stat = entry.stat()
                yield ObjectInfo(name=name, size=stat.st_size, sha256=None, modified=stat.st_mtime)


def _sorted_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_order)
    except FileNotFoundError:
        return []


def _order(entry: os.DirEntry[str]) -> str:
    return entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
