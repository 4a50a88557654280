"""What the rest of Regen knows of a destination, whatever it is made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

PUT_DEADLINE_S: Final = 120
"""Seconds after the call of ``put`` or ``put_new`` in which its write can still take effect, with
all its retries. Whoever has to be sure that nobody writes any more (the repair) waits longer.

For S3 it holds by arithmetic (:mod:`regen_common.objects.upload`). In a directory a file that took
longer to write does not get its name; what remains is a kernel that hangs in the very link or
rename (a dead NFS server).
"""

Checksums = Literal["when_required", "when_supported"]
"""Which checksums S3 requests and answers carry; boto3's words. ``when_required`` is our default.

boto3's own, ``when_supported``, means CRC headers, which many stores that are not Amazon's refuse,
and over https a trailer in ``aws-chunked`` framing, which some store as if it were content. By
default each PUT carries the Content-MD5 that stores have always understood; ``when_supported`` is
for those that want a CRC32 (S3 Express). It is sent as a header, never as a trailer.
"""

JSON_LINES: Final = "application/x-ndjson"


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectInfo:
    """What a destination says of one object."""

    name: str  # relative to the destination, "/" between its parts
    size: int  # bytes as stored, compressed
    sha256: str | None  # hex, of the uncompressed content; None where unknown, and in lists
    modified: float  # seconds since the Unix epoch, by the destination's clock


class Objects(Protocol):
    """A destination. May be used by several threads at once.

    Errors of all methods: :class:`regen_common.errors.DestinationError` when trying again may
    help, :class:`regen_common.errors.DestinationRefusedError` when it can't work as configured.
    """

    @property
    def url(self) -> str:
        """Opens the same destination again; safe to show."""
        ...

    def check(self) -> None:
        """Return if the destination is usable. A folder that is missing is made."""
        ...

    def put_new(
        self, name: str, body: bytes, *, sha256: str, content_type: str = JSON_LINES
    ) -> None:
        """Create an object, or find that the same one is there already. Never overwrite.

        ``sha256`` is in hex and of the *uncompressed* content; ``body`` is what is stored. When
        this returns, the object has been seen at the destination, whole. After a transient error
        the object may or may not be there; the same call again settles it.

        Raises :class:`regen_common.errors.ObjectConflictError` when an object of this name holds
        other content. Two bodies that decompress to the same content are the same object.
        """
        ...

    def put(self, name: str, body: bytes, *, content_type: str = "application/json") -> None:
        """Write an object, replacing whole what was there. For the manifest only."""
        ...

    def get(self, name: str) -> bytes | None:
        """The object as stored, or None where there is none."""
        ...

    def head(self, name: str) -> ObjectInfo | None:
        """What is known of an object, or None where there is none."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """The objects whose names begin with ``prefix``, in order of their names."""
        ...

    def close(self) -> None:
        """Give up connections. Only needed by those who open many destinations."""
        ...
