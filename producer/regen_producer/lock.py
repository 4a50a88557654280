"""One producer at a time per store, and only in a folder that is a store's own."""

import fcntl
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from regen_common import errors
from regen_common.store import schema

LOCK_FILE: Final = "producer.lock"


class StoreLock:
    """Held while a store is written; the system lets go of it when the process ends.

    The file stays and marks the folder as one that intake may clear.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self._open()
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            self._close()
            raise errors.UsageError(
                f"another regen-produce is writing {self._folder}; wait for it, or give this run "
                "a --store of its own"
            ) from cause
        except OSError as cause:
            self._close()
            raise errors.UsageError(
                f"--store {self._folder} can't be written: {cause.strerror}"
            ) from cause
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _open(self) -> IO[bytes]:
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = self._folder / LOCK_FILE
        is_store = lock.exists() or (self._folder / schema.STORE_FILE).exists()
        if not is_store and any(self._folder.iterdir()):
            raise errors.UsageError(
                f"--store {self._folder} holds other things; name a folder of its own"
            )
        return lock.open("ab")

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
