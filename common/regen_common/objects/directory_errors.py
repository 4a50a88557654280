"""What an error of the operating system means for a directory destination."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from regen_common import errors
from regen_common.objects import exclusive

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED: Final = {
    errno.EACCES: "give this user the right to write there, or name another folder with --to",
    errno.EPERM: "give this user the right to write there, or name another folder with --to",
    errno.EROFS: "mount it for writing, or name another folder with --to",
    errno.ENOTDIR: "part of the path is a file; name another folder with --to",
    errno.EISDIR: "a folder is in the object's place; name another folder with --to",
    errno.EEXIST: "a file is in the folder's place; name another folder with --to",
    errno.EXDEV: "its tmp/ and batches/ are on different file systems; put them on one",
    errno.ELOOP: "its symbolic links lead in a circle; name another folder with --to",
    errno.ENAMETOOLONG: "the path is too long; name another folder with --to",
}


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what the body raises of OSError as the error that a caller of Regen can act on."""
    try:
        yield
    except OSError as cause:
        raise _error(cause, path) from cause


def _error(cause: OSError, path: Path) -> errors.RegenError:
    what = cause.strerror or str(cause)
    if isinstance(cause, exclusive.NotExclusiveError):
        return errors.DestinationRefusedError(
            f"the file system of {path} can't create a file without overwriting ({what}); "
            "name a folder on a local disk or NFS with --to, or s3:// itself"
        )
    if cause.errno in _FULL:
        return errors.DestinationError(
            f"disk full at {path} ({what}); free some space, the write is tried again"
        )
    cure = _REFUSED.get(cause.errno or 0)
    if cure is not None:
        return errors.DestinationRefusedError(f"{path} can't be used ({what}): {cure}")
    return errors.DestinationError(f"{path}: {what}; see whether the disk is well and mounted")
