"""One pass over all input files: rows of the store, in order of index."""

from collections.abc import Iterator, Sequence

from regen_common import errors
from regen_producer import inputs, raw, readers, rows


class Reading:
    """``start``: how many rows are in the store already. ``limit``: a ceiling on all rows.

    After the pass ``cuts`` says which files ended too early, and ``counted`` how many rows each
    file gave.
    """

    def __init__(
        self,
        files: Sequence[inputs.InputFile],
        builder: rows.Builder,
        *,
        start: int = 0,
        limit: int | None = None,
    ) -> None:
        self.cuts: list[raw.Cut] = []
        self.counted = [0] * len(files)
        self._files = files
        self._builder = builder
        self._start = start
        self._limit = limit
        self._bytes_done = 0
        self._open: readers.Reader | None = None

    @property
    def bytes_total(self) -> int:
        return sum(file.size for file in self._files)

    @property
    def bytes_read(self) -> int:
        return self._bytes_done + (self._open.position() if self._open else 0)

    def rows(self) -> Iterator[rows.Row]:
        """Raises :class:`regen_common.errors.InputError` for what can't be read."""
        index = 0
        for place, file in enumerate(self._files):
            for found in self._file(file):
                if self._limit is not None and index >= self._limit:
                    return
                if isinstance(found, raw.Cut):
                    self.cuts.append(found)
                    continue
                if index >= self._start:
                    yield self._builder.build(index, f"{file.label}:{found.number}", found)
                self.counted[place] += 1
                index += 1

    def _file(self, file: inputs.InputFile) -> Iterator[raw.RawRow | raw.Cut]:
        with readers.Reader(file.path, file.label) as reader:
            self._open = reader
            yield from reader.rows()
        self._open = None
        self._bytes_done += file.size
        if file.path.stat().st_size != file.size:
            raise errors.InputError(
                f"{file.path} changed while it was read; start again when it is complete"
            )
