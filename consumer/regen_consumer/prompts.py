"""Prompts out of the store, without blocking the loop: reading a row group takes milliseconds."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from regen_common.store.reader import Store
from regen_common.store.schema import Prompt


class Prompts:
    """The store on a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    @property
    def fingerprint(self) -> str:
        """Of the input that the store was made of."""
        return self._store.info.fingerprint

    async def get(self, index: int) -> Prompt:
        """One prompt. Raises :class:`regen_common.errors.StoreError`."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._thread, self._store.prompts, [index])
        return found[0]

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._store.close()
