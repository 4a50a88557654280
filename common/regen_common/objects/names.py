"""Names of objects, relative to their destination."""

from typing import Final

TEMPORARY_START: Final = ".regen-"
TEMPORARY_END: Final = ".tmp"
TEMPORARY_FOLDER: Final = "tmp"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one of ours that is not finished."""
    last = name.rpartition("/")[2]
    return last.startswith(TEMPORARY_START) and last.endswith(TEMPORARY_END)


def require_name(name: str) -> str:
    """The name itself. Raises :class:`ValueError` for one that could leave the destination."""
    if "\0" in name or any(part in {"", ".", ".."} for part in name.split("/")):
        raise ValueError(f"no name of an object: {name!r}")
    if is_temporary(name):
        raise ValueError(f"the name of a temporary file: {name!r}")
    return name


def require_prefix(prefix: str) -> str:
    """The prefix itself; empty, or a name, or the beginning of one."""
    if prefix and prefix.rstrip("/"):
        require_name(prefix.removesuffix("/"))
    elif prefix:
        raise ValueError(f"no prefix of objects: {prefix!r}")
    return prefix


def temporary_folder(name: str) -> str:
    """Where the object's temporary file goes: ``{run}/tmp``, outside every list of batches."""
    run, slash, _ = name.partition("/")
    return f"{run}/{TEMPORARY_FOLDER}" if slash else ""
