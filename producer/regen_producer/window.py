"""A piece of a long text in memory, that moves over the file: text, cursor, byte position."""

import codecs
import re
from typing import BinaryIO, Final

CHUNK_BYTES: Final = 4 << 20
CHARS_MAX: Final = 64 << 20
"""What one row may need at most."""

_INVALID = re.compile("[\udc80-\udcff]")


class Window:
    """``text[at:]`` is what has not been used yet. Bytes that are no UTF-8 stand in it as the
    surrogates U+DC80 to U+DCFF, which decoded text can't hold otherwise."""

    def __init__(self, stream: BinaryIO) -> None:
        self.text = ""
        self.at = 0
        self.at_end = False
        self._stream = stream
        self._pending = b""
        self._bytes_before = 0
        self._has_invalid = False

    def grow(self) -> bool:
        """Read on, and forget what was used. False at the end, or when the window is full."""
        if self.at_end or len(self.text) - self.at >= CHARS_MAX:
            return False
        self._bytes_before = self.byte_position(self.at)
        self.text, self.at = self.text[self.at :], 0
        chunk = self._stream.read(max(CHUNK_BYTES, len(self.text)))
        self.at_end = not chunk
        self.text += self._decode(chunk)
        return True

    def byte_position(self, at: int) -> int:
        """How many bytes of the file stand before ``text[at]``."""
        before = self.text[:at]
        if before.isascii():
            return self._bytes_before + len(before)
        return self._bytes_before + len(before.encode("utf-8", "surrogateescape"))

    def is_valid(self, end: int) -> bool:
        """Whether ``text[at:end]`` was UTF-8 in the file."""
        return not self._has_invalid or _INVALID.search(self.text, self.at, end) is None

    def _decode(self, chunk: bytes) -> str:
        data = self._pending + chunk
        try:
            text, used = codecs.utf_8_decode(data, "strict", self.at_end)
        except UnicodeDecodeError:
            self._has_invalid = True
            text, used = codecs.utf_8_decode(data, "surrogateescape", self.at_end)
        self._pending = data[used:]
        return text
