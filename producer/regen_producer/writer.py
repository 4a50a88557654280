"""Writes the prompt store. A crash at any moment leaves no store, or the one that was there.

Each part is written under a temporary name, synced, and renamed; ``store.json`` names the parts
that count and is replaced last, in one step. A folder without it is no store.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from regen_common import errors
from regen_common.store import schema
from regen_producer import rows

TEMPORARY: Final = ".tmp"

_COMPRESSION: Final = "zstd"


class Writer:
    """Appends rows to a folder, after the parts that stand in it and stay as they are.

    Raises :class:`regen_common.errors.StoreError` when the disk does.
    """

    def __init__(self, folder: Path, parts: list[dict[str, Any]]) -> None:
        self._folder = folder
        self._kept = list(parts)
        self._parts = list(parts)
        self._group: list[rows.Row] = []
        self._part: pq.ParquetWriter | None = None
        self._part_rows = 0
        with _translated(folder):
            sweep(folder, parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._discard()

    def add(self, row: rows.Row) -> None:
        self._group.append(row)
        if len(self._group) == schema.ROWS_PER_GROUP:
            with _translated(self._folder):
                self._write_group()

    def close(self) -> list[dict[str, Any]]:
        """Write what is held back, and return all parts, kept ones first."""
        with _translated(self._folder):
            if self._group:
                self._write_group()
            self._close_part()
        return self._parts

    def _discard(self) -> None:
        # as far as the disk lets us; what stays is removed by the next start
        with contextlib.suppress(OSError):
            if self._part is not None:
                self._part.close()
            sweep(self._folder, self._kept)

    def _write_group(self) -> None:
        part = self._part = self._part or self._open_part()
        columns = {name: [getattr(row, name) for row in self._group] for name in rows.COLUMNS}
        table = pa.table(columns, schema=schema.SCHEMA)
        part.write_table(table, row_group_size=schema.ROWS_PER_GROUP)
        self._part_rows += len(self._group)
        self._group.clear()
        if self._part_rows >= schema.ROWS_PER_PART:
            self._close_part()

    def _open_part(self) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._temporary(),
            schema.SCHEMA,
            compression=_COMPRESSION,
            use_dictionary=False,
            write_statistics=["index"],
        )

    def _close_part(self) -> None:
        if self._part is None:
            return
        self._part.close()
        name = schema.part_name(len(self._parts))
        _publish(self._temporary(), self._folder / name)
        self._parts.append({"name": name, "rows": self._part_rows})
        self._part, self._part_rows = None, 0

    def _temporary(self) -> Path:
        return self._folder / (schema.part_name(len(self._parts)) + TEMPORARY)


def publish(folder: Path, info: schema.StoreInfo) -> None:
    """Make a store of the parts in the folder: from now on it counts.

    Raises :class:`regen_common.errors.StoreError` when the disk does.
    """
    final = folder / schema.STORE_FILE
    temporary = final.with_name(final.name + TEMPORARY)
    with _translated(folder):
        temporary.write_bytes(orjson.dumps(info, option=orjson.OPT_INDENT_2) + b"\n")
        _publish(temporary, final)


def sweep(folder: Path, parts: list[dict[str, Any]]) -> None:
    """Remove what a producer that did not finish left behind."""
    keep = {part["name"] for part in parts}
    for pattern in ("part-*.parquet", f"part-*.parquet{TEMPORARY}", f"*.json{TEMPORARY}"):
        for path in folder.glob(pattern):
            if path.name not in keep:
                path.unlink(missing_ok=True)


def _publish(temporary: Path, final: Path) -> None:
    """Give a file its name once its content is on the disk, and see that the name is too."""
    _sync(temporary)
    temporary.replace(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise errors.StoreError(
            f"--store {folder} can't be written: {cause.strerror or cause}; mend that and start "
            "the same command again"
        ) from cause
