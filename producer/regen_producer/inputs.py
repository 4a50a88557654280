"""The files that a command names: that they can be read, and what tells them from others.

The fingerprint is cheap, because it is taken again at every start: the name, the size, and the
first and the last MiB of each file.
"""

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from regen_common import errors

EDGE_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """One file of the input. ``sha256`` is over its first and its last MiB.

    ``label`` names it in sources and reports: its name, or its path where two have one name.
    """

    path: Path
    label: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.name

    def described(self) -> dict[str, Any]:
        """As it stands in ``store.json``."""
        return {"name": self.name, "path": str(self.path), "size": self.size, "sha256": self.sha256}


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """The flags that decide what the store holds for a given input."""

    turns: str = "strip"
    dedupe: bool = False
    max_prompt_chars: int | None = None


def find(names: Iterable[str]) -> list[InputFile]:
    """The files in the order given.

    Raises :class:`regen_common.errors.InputError` where one is missing or can't be read,
    :class:`regen_common.errors.UsageError` where it is something else than a file.
    """
    files = [_find(name) for name in names]
    if not files:
        raise errors.UsageError("no input; name at least one .jsonl or .json file")
    times = Counter(file.name for file in files)
    return [
        file if times[file.name] == 1 else replace(file, label=str(file.path)) for file in files
    ]


def _find(name: str) -> InputFile:
    if name == "-" or "://" in name:
        raise errors.UsageError(f"{name}: only local files can be read; copy it to one first")
    path = Path(name).absolute()
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise errors.UsageError(f"{name} is a folder; name the files in it, such as {name}/*")
        if not stat.S_ISREG(facts.st_mode):
            raise errors.UsageError(f"{name} is no regular file; write its content to one first")
        edges = _edges(path, facts.st_size)
        return InputFile(path=path, label=path.name, size=facts.st_size, sha256=edges)
    except FileNotFoundError as cause:
        raise errors.UsageError(f"no file {name}; is the path right?") from cause
    except (OSError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else cause
        raise errors.InputError(f"{name} can't be read: {why}") from cause


def _edges(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(EDGE_BYTES))
        file.seek(max(0, size - EDGE_BYTES), os.SEEK_SET)
        digest.update(file.read(EDGE_BYTES))
    return digest.hexdigest()


def fingerprint(files: Iterable[InputFile], choices: Choices) -> str:
    """What is the same, in hex, exactly when the same store would come out."""
    body = {
        "files": [[file.name, file.size, file.sha256] for file in files],
        "turns": choices.turns,
        "dedupe": choices.dedupe,
        "max_prompt_chars": choices.max_prompt_chars,
    }
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
