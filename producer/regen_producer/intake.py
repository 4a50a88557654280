"""The intake: input files in, a prompt store and its bitmaps out."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from regen_common import errors
from regen_common.store import reader, schema
from regen_producer import dump as dumps
from regen_producer import inputs as files_of
from regen_producer import lock, reading, rows, stored, tally, writer
from regen_producer import turns as modes

PROGRESS_ROWS: Final = 1_000

How = Literal["built", "extended", "loaded", "dry"]


@dataclass(frozen=True, kw_only=True, slots=True)
class IntakeProgress:
    """How far the reading is. ``rows`` counts from the input's beginning."""

    rows: int
    tools: int
    rejected: int
    bytes_read: int
    bytes_total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Intake:
    """What the input holds. Bitmaps by index, most significant bit first, all equally long.

    ``how``: the store was ``built``, ``extended`` (a raised limit), found whole (``loaded``), or
    not touched (``dry``). ``info.cut`` says where the input ended too early, if it did.
    """

    info: schema.StoreInfo
    tools: bytes
    multi_turn: bytes
    rejected: bytes
    rejections: Mapping[str, tally.Rejections]
    how: How


def run_intake(
    *,
    inputs: list[str],
    store: Path,
    run: str,
    limit: int | None = None,
    turns: str = "strip",
    allow_truncated: bool = False,
    dedupe: bool = False,
    max_prompt_chars: int | None = None,
    dump: Path | None = None,
    dry_run: bool = False,
    progress: Callable[[IntakeProgress], None] = lambda _progress: None,
) -> Intake:
    """Read the inputs into the store, or find them in it.

    ``limit`` is a ceiling on input rows; a higher one than the store was made with adds to it.
    ``progress`` is called every thousand rows and at the end. With ``dry_run`` nothing is written
    but the ``dump``.

    Raises :class:`regen_common.errors.InputError` for input that can't be read whole,
    :class:`regen_common.errors.RunMismatchError` where the store was made of another input.
    """
    choices = files_of.Choices(turns=turns, dedupe=dedupe, max_prompt_chars=max_prompt_chars)
    _check(choices, limit)
    files = files_of.find(inputs)
    job = _Job(
        files=files,
        choices=choices,
        allow_truncated=allow_truncated,
        progress=progress,
        wanted=schema.StoreInfo(
            version=schema.STORE_VERSION,
            run=run,
            turns=turns,
            fingerprint=files_of.fingerprint(files, choices),
            limit=limit,
            files=[],
            counts=tally.Tally().counts(),
            parts=[],
            cut=None,
        ),
    )
    if dry_run:
        with _opened(dump) as lines:
            found = tally.Tally()
            info = job.read(found, rows.Builder(choices), _writes(lines))
        return _intake(info, found, "dry")
    with lock.StoreLock(store):
        return _into_store(job, store, dump)


def load(store: Path) -> Intake:
    """The intake of a finished store.

    Raises :class:`regen_common.errors.StoreError` where there is none.
    """
    info = reader.read_info(store)
    return _intake(info, stored.tally_of(store, info), "loaded")


Sink = Callable[[rows.Row], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """``wanted`` is the store's description, without what only reading can tell."""

    files: list[files_of.InputFile]
    choices: files_of.Choices
    allow_truncated: bool
    progress: Callable[[IntakeProgress], None]
    wanted: schema.StoreInfo

    def read(self, found: tally.Tally, builder: rows.Builder, *sinks: Sink) -> schema.StoreInfo:
        """Give every row from ``found.input`` on to the sinks, and count it in ``found``."""
        limit = self.wanted.limit
        source = reading.Reading(self.files, builder, start=found.input, limit=limit)
        for row in source.rows():
            for sink in (found.add, *sinks):
                sink(row)
            if found.input % PROGRESS_ROWS == 0:
                self._tell(found, source)
        self._tell(found, source)
        return self._described(found, source)

    def _tell(self, found: tally.Tally, source: reading.Reading) -> None:
        self.progress(
            IntakeProgress(
                rows=found.input,
                tools=found.tools,
                rejected=found.rejected,
                bytes_read=source.bytes_read,
                bytes_total=source.bytes_total,
            )
        )

    def _described(self, found: tally.Tally, source: reading.Reading) -> schema.StoreInfo:
        cut = "; ".join(str(cut) for cut in source.cuts) or None
        if cut and not self.allow_truncated:
            raise errors.InputError(f"{cut}; --allow-truncated uses the whole rows")
        if not found.input:
            names = ", ".join(str(file.path) for file in self.files)
            raise errors.InputError(f"no rows in {names}; is it the right file?")
        counted = zip(self.files, source.counted, strict=True)
        files = [file.described() | {"rows": count} for file, count in counted]
        return replace(self.wanted, files=files, counts=found.counts(), cut=cut)


def _check(choices: files_of.Choices, limit: int | None) -> None:
    if choices.turns not in modes.MODES:
        raise errors.UsageError(
            f"--turns {choices.turns} can't be done yet; there is: {', '.join(modes.MODES)}"
        )
    if limit is not None and limit < 1:
        raise errors.UsageError(f"--limit {limit}: wants at least one row")


def _into_store(job: _Job, store: Path, dump: Path | None) -> Intake:
    known = _known(job.wanted, store)
    if known is None:
        return _write(job, store, dump, known=None)
    if _is_enough(known, job.wanted.limit):
        with _opened(dump) as lines:
            _copy(store, known, lines)
        return load(store)
    return _write(job, store, dump, known=known)


def _known(wanted: schema.StoreInfo, store: Path) -> schema.StoreInfo | None:
    """The store that stands in the folder, if it is this run's and of this input."""
    if not (store / schema.STORE_FILE).exists():
        return None
    known = reader.read_info(store)
    if known.run != wanted.run:
        raise errors.StoreError(
            f"{store} is the store of run {known.run!r}; give this run a --store "
            "(regen-run: an --out) of its own"
        )
    if known.fingerprint != wanted.fingerprint:
        names = ", ".join(str(file["name"]) for file in known.files)
        raise errors.RunMismatchError(
            f"{store} was made of another input, or with other flags ({names}, --turns "
            f"{known.turns}); use another --run for this one"
        )
    return known


def _is_enough(known: schema.StoreInfo, limit: int | None) -> bool:
    """Whether the store holds all the rows that are wanted."""
    if limit is not None and limit < known.counts.input:
        raise errors.UsageError(
            f"--limit {limit}: the store holds {known.counts.input:,} rows already; a limit can "
            "only be raised"
        )
    return known.limit is None or (limit is not None and limit <= known.limit)


def _write(job: _Job, store: Path, dump: Path | None, known: schema.StoreInfo | None) -> Intake:
    """Read what is not in the store yet; what is in it stays as it is."""
    found, builder = tally.Tally(), rows.Builder(job.choices)
    with writer.Writer(store, known.parts if known else []) as out, _opened(dump) as lines:
        if known:
            found = stored.tally_of(store, known)
            _copy(store, known, lines)
            builder.remember(stored.prompts_of(store, known))
        info = job.read(found, builder, out.add, _writes(lines))
        info = replace(info, parts=out.close())
    writer.publish(store, info)
    return _intake(info, found, "extended" if known else "built")


def _copy(store: Path, known: schema.StoreInfo, lines: BinaryIO | None) -> None:
    """Dump the rows of the store as if they had been read again."""
    if lines is not None:
        for row in stored.rows_of(store, known):
            lines.write(dumps.line(row))


def _intake(info: schema.StoreInfo, found: tally.Tally, how: How) -> Intake:
    return Intake(info=info, rejections=found.rejections(), how=how, **found.bitmaps())


def _writes(lines: BinaryIO | None) -> Sink:
    if lines is None:
        return lambda _row: None
    return lambda row: lines.write(dumps.line(row))


@contextlib.contextmanager
def _opened(dump: Path | None) -> Iterator[BinaryIO | None]:
    """The dump's file, for a body that maps its own errors."""
    if dump is None:
        yield None
        return
    try:
        with dump.open("wb", buffering=1 << 20) as lines:
            yield lines
    except OSError as cause:
        raise errors.UsageError(f"--dump {dump} can't be written: {cause.strerror}") from cause
