"""Give a finished file its name, and fail if the name is taken."""

import ctypes
import errno
import functools
import os
from pathlib import Path
from typing import Any, Final

_NO_HARD_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1


class NotExclusiveError(OSError):
    """This file system can't create a name without the danger of overwriting."""


def publish(temporary: Path, final: Path) -> None:
    """Move ``temporary`` to ``final`` in one step; ``temporary`` may stay as a second link.

    By a hard link; on file systems that have none (exFAT, some FUSE) by Linux's
    ``renameat2(RENAME_NOREPLACE)``. A marker file would be no third way: a crash between marker
    and rename leaves a name that nobody may ever take.

    Raises :class:`FileExistsError` when the name is taken, :class:`NotExclusiveError` when
    neither way exists, and :class:`OSError` for everything else.
    """
    try:
        os.link(temporary, final)
    except OSError as cause:
        if cause.errno not in _NO_HARD_LINKS:
            raise
        _rename(temporary, final)


def _rename(temporary: Path, final: Path) -> None:
    rename = _renameat2()
    if rename is None:
        raise NotExclusiveError(errno.ENOSYS, "no hard links and no renameat2", str(final))
    source, target = os.fsencode(temporary), os.fsencode(final)
    if rename(_AT_FDCWD, source, _AT_FDCWD, target, _RENAME_NOREPLACE) == 0:
        return
    code = ctypes.get_errno()
    if code in _NO_HARD_LINKS:
        raise NotExclusiveError(code, os.strerror(code), str(final))
    raise OSError(code, os.strerror(code), str(final))


@functools.cache
def _renameat2() -> Any | None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        text, number = ctypes.c_char_p, ctypes.c_int
        function.argtypes = [number, text, number, text, ctypes.c_uint]
    return function
