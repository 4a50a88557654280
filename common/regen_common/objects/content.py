"""What a stored body says, whatever codec and version wrote it."""

import gzip
import hashlib
import io
import zlib
from typing import IO, Final, cast

import zstandard

_BLOCK_BYTES: Final = 1 << 20


def sha256_of(name: str, stored: bytes) -> str | None:
    """sha256 in hex of the uncompressed content; None when the body is damaged.

    The codec is told by the name's ending: ``.zst``, ``.gz``, or none.
    """
    digest = hashlib.sha256()
    try:
        with _reader(name, stored) as content:
            while block := content.read(_BLOCK_BYTES):
                digest.update(block)
    except (zstandard.ZstdError, OSError, EOFError, zlib.error):
        return None
    return digest.hexdigest()


def is_same(name: str, stored: bytes, *, body: bytes, sha256: str) -> bool:
    """Whether ``stored`` is ``body``, or another packing of the content with this ``sha256``."""
    return stored == body or sha256_of(name, stored) == sha256


def _reader(name: str, stored: bytes) -> IO[bytes]:
    raw = io.BytesIO(stored)
    if name.endswith(".zst"):
        unpacker = zstandard.ZstdDecompressor()
        return cast("IO[bytes]", unpacker.stream_reader(raw, read_across_frames=True))
    if name.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    return raw
