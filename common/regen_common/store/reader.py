"""Prompts out of the store by index, with a bounded cache of row groups."""

import bisect
import itertools
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from regen_common import errors
from regen_common.store import schema

GROUPS_CACHED_MAX: Final = 6
"""Row groups kept in memory: 1,000 prompts of about 7 KB each."""

_COLUMNS: Final = [
    "index",
    "id",
    "messages",
    "tools",
    "has_tools",
    "multi_turn",
    "prompt_chars",
    "error",
    "source",
    "sha256",
]


class Store:
    """An open prompt store. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info = read_info(folder)
        self._starts = [0, *itertools.accumulate(part["rows"] for part in self.info.parts)]
        self._files: dict[int, pq.ParquetFile] = {}
        self._groups: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()

    def prompts(self, indices: Iterable[int]) -> list[schema.Prompt]:
        """The prompts in the order asked for. Rejected or unknown indices are an error."""
        return [self._prompt(index) for index in indices]

    def row(self, index: int) -> dict[str, Any]:
        """One row as it stands, rejected or not."""
        group, place = self._locate(index)
        return dict(group.slice(place, 1).to_pylist()[0])

    def close(self) -> None:
        self._groups.clear()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _prompt(self, index: int) -> schema.Prompt:
        row = self.row(index)
        if row["error"] is not None:
            raise errors.StoreError(f"{self.folder}: row {index} was rejected: {row['error']}")
        return schema.Prompt(
            index=index,
            id=None if row["id"] is None else orjson.loads(row["id"]),
            messages_json=row["messages"].encode(),
            tools_json=None if row["tools"] is None else row["tools"].encode(),
            has_tools=row["has_tools"],
            multi_turn=row["multi_turn"],
            prompt_chars=row["prompt_chars"],
            source=row["source"],
            sha256=row["sha256"],
        )

    def _locate(self, index: int) -> tuple[pa.Table, int]:
        if not 0 <= index < self._starts[-1]:
            raise errors.StoreError(
                f"{self.folder}: no row {index} in a store of {self._starts[-1]:,} rows; "
                "name the run's own store with --store"
            )
        part = bisect.bisect_right(self._starts, index) - 1
        number, place = divmod(index - self._starts[part], schema.ROWS_PER_GROUP)
        return self._group(part, number), place

    def _group(self, part: int, number: int) -> pa.Table:
        found = self._groups.get((part, number))
        if found is not None:
            self._groups.move_to_end((part, number))
            return found
        table = self._file(part).read_row_group(number, columns=_COLUMNS)
        self._groups[part, number] = table
        if len(self._groups) > GROUPS_CACHED_MAX:
            self._groups.popitem(last=False)
        return table

    def _file(self, part: int) -> pq.ParquetFile:
        if part not in self._files:
            path = self.folder / self.info.parts[part]["name"]
            try:
                self._files[part] = pq.ParquetFile(path, memory_map=True)
            except (OSError, pa.ArrowInvalid) as cause:
                raise errors.StoreError(f"{path} can't be read: {cause}") from cause
        return self._files[part]


def read_info(folder: Path) -> schema.StoreInfo:
    """``store.json`` of the folder, checked.

    Raises :class:`regen_common.errors.StoreError` where there is none or it is of another kind.
    """
    path = folder / schema.STORE_FILE
    try:
        raw = orjson.loads(path.read_bytes())
        counts = schema.Counts(**raw.pop("counts"))
        info = schema.StoreInfo(counts=counts, **raw)
    except FileNotFoundError as cause:
        raise errors.StoreError(
            f"no prompt store at {folder}; name the folder that regen-produce wrote with --store"
        ) from cause
    except (OSError, ValueError, TypeError, KeyError) as cause:
        raise errors.StoreError(f"{path} is no store description: {cause}") from cause
    if info.version != schema.STORE_VERSION:
        raise errors.StoreError(
            f"{folder} is a store of version {info.version}, this Regen reads "
            f"{schema.STORE_VERSION}; use the Regen that wrote it"
        )
    return info
