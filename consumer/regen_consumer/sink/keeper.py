"""Keeps ``manifest.json`` current, and refuses a destination that Redis does not match."""

from typing import Any, Final

from regen_common import errors, log, redisio
from regen_common.clock import Clock, iso_utc
from regen_common.objects import Objects
from regen_common.queue import transitions
from regen_common.run import books, config, manifest, opening

WRITE_EVERY_S: Final = 10.0
ENGINES_MAX: Final = 64


class ManifestKeeper:
    """The manifest of one run at one destination."""

    def __init__(self, run: opening.OpenRun, objects: Objects, *, clock: Clock) -> None:
        self._run = run
        self._objects = objects
        self._clock = clock
        self._written_at_s = -WRITE_EVERY_S
        self._written_batches: int | None = None

    @property
    def _name(self) -> str:
        return self._run.config.run

    def open(self) -> None:
        """Check that Redis and destination are of one life; write the first manifest.

        Raises :class:`regen_common.errors.RunMismatchError` otherwise.
        """
        found = manifest.read(self._objects, self._name)
        if found is not None:
            manifest.check_same_life(
                found,
                epoch=self._run.config.epoch,
                fingerprint=self._run.config["input_fingerprint"],
                where=self._objects.url,
            )
        self._check_batches()
        self.keep(batches=0, now=True)

    def _check_batches(self) -> None:
        """Every batch there must be in the ledger, or an open intent's."""
        prefix = manifest.batches_prefix(self._name)
        there = [info.name.removeprefix(prefix) for info in self._objects.list(prefix)]
        with redisio.mapped_errors():  # after the list: what is committed meanwhile is in it
            pipe = self._run.client.pipeline(transaction=True)
            pipe.hkeys(self._run.keys.intents)
            pipe.hkeys(self._run.keys.ledger)
            known = {redisio.text(name) for names in pipe.execute() for name in names}
        unknown = [name for name in there if name not in known]
        if unknown:
            raise errors.RunMismatchError(
                f"{self._objects.url} holds {len(unknown)} batches of run {self._name!r} that this "
                f"Redis does not know (first {unknown[0]}): Redis was restored from an older copy; "
                "restore the newest one, or use another --run"
            )

    def epoch_there(self) -> str:
        """The epoch that the destination belongs to now.

        Raises :class:`regen_common.errors.RunMismatchError` when its manifest is gone: was it
        emptied? Writing on would hide that.
        """
        found = manifest.read(self._objects, self._name)
        if found is None:
            raise errors.RunMismatchError(
                f"{self._objects.url}/{manifest.name(self._name)} is gone; if its batches "
                "are there, start the sink again, and it is written anew; else bring them back"
            )
        return found.epoch

    def keep(self, *, batches: int, now: bool = False) -> None:
        """Write the manifest if batches were added since, at most every WRITE_EVERY_S."""
        at_s = self._clock.monotonic_s()
        early = at_s - self._written_at_s < WRITE_EVERY_S
        if not now and (early or batches == self._written_batches):
            return
        try:
            manifest.write(self._objects, self._current())
        except (errors.DestinationError, errors.DestinationRefusedError) as error:
            log.warning("manifest_not_written", error=str(error))
        else:
            self._written_batches = batches
        self._written_at_s = at_s

    def _current(self) -> manifest.Manifest:
        run = self._run
        config_now = config.load(run.client, self._name)
        if config_now.epoch != run.config.epoch:
            raise errors.WrongEpochError(
                f"run {self._name!r} was rebuilt since this sink began; start it again"
            )
        counted = books.from_counted(run.queue.execute(transitions.books()))
        with redisio.mapped_errors():
            stats = run.client.hmget(run.keys.stats, "batches", "batch_bytes")
        return manifest.Manifest(
            version=manifest.MANIFEST_VERSION,
            run=self._name,
            epoch=config_now.epoch,
            input_fingerprint=config_now["input_fingerprint"],
            configuration=config_now.values,
            history=config.history(run.client, self._name),
            engines=self._engines(),
            counts={
                "input": counted.input,
                "done": counted.done,
                "failed": counted.failed,
                "rejected": counted.rejected,
                "pending": counted.pending,
            },
            batches=int(stats[0] or 0),
            bytes=int(stats[1] or 0),
            updated_at=iso_utc(self._clock.time_s()),
        )

    def _engines(self) -> list[dict[str, Any]]:
        """What the consumers last said of their engines."""
        names = self._run.keys
        with redisio.mapped_errors():
            gpus: list[Any] = self._run.client.zrevrange(names.gpus, 0, ENGINES_MAX - 1)
            pipe = self._run.client.pipeline(transaction=False)
            wanted = ("host", "gpu", "kind", "model", "version", "weight_version")
            for gpu in gpus:
                host, _, number = redisio.text(gpu).rpartition(":")
                pipe.hmget(names.gpu(host, int(number)), *wanted)
            rows = pipe.execute()
        return [
            dict(zip(wanted, (None if v is None else redisio.text(v) for v in row), strict=True))
            for row in rows
            if row[0] is not None
        ]
