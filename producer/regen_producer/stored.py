"""A finished store read back: its counts and bits for a restart, its rows for a dump."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from regen_common import errors
from regen_common.store import schema
from regen_producer import rows, tally

_BATCH_ROWS = 20_000


def tally_of(folder: Path, info: schema.StoreInfo) -> tally.Tally:
    """The counts and bits of all rows, from the few columns that hold them."""
    out = tally.Tally()
    columns = ["index", "has_tools", "multi_turn", "error", "detail", "source"]
    for index, has_tools, multi_turn, error, detail, source in _values(folder, info, columns):
        if error is None:
            out.add_prompt(index, has_tools=has_tools, multi_turn=multi_turn)
        else:
            out.add_rejected(index, error, detail or "", source)
    if out.counts() != info.counts:
        raise errors.StoreError(
            f"{folder}: its rows are not those that {schema.STORE_FILE} counts; remove the folder "
            "and start again"
        )
    return out


def rows_of(folder: Path, info: schema.StoreInfo) -> Iterator[rows.Row]:
    """All rows in order."""
    for values in _values(folder, info, list(rows.COLUMNS)):
        yield rows.Row(**dict(zip(rows.COLUMNS, values, strict=True)))


def prompts_of(folder: Path, info: schema.StoreInfo) -> Iterator[tuple[int, str]]:
    """Index and content digest of every accepted row."""
    for index, error, sha256 in _values(folder, info, ["index", "error", "sha256"]):
        if error is None:
            yield index, sha256


def _values(folder: Path, info: schema.StoreInfo, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    for part in info.parts:
        path = folder / part["name"]
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                    lists = [batch.column(name).to_pylist() for name in columns]
                    yield from zip(*lists, strict=True)
        except (OSError, pa.ArrowInvalid) as cause:
            raise errors.StoreError(
                f"{path} can't be read: {cause}; remove the folder and start again"
            ) from cause
