"""The fake tokenizer: which text each output id stands for.

Ids below 256 are single bytes, so that any text has ids; a few ids are Qwen's own special tokens;
the rest are made-up words of about four characters. Prompts are only counted (four bytes of their
canonical JSON to a token), and get ids that carry the prompt's digest, see :mod:`prompts`.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Final

IM_START: Final = 151644
IM_END: Final = 151645
TOOL_OPEN: Final = 151657
TOOL_CLOSE: Final = 151658
THINK_OPEN: Final = 151667
THINK_CLOSE: Final = 151668
NEWLINE: Final = 198
BLANK_LINE: Final = 271
ASSISTANT: Final = 77091
OK: Final = 10003
DOT: Final = 13
COLON: Final = 25
ANSWER: Final = 9217
THOUGHT: Final = 33975
SPACE: Final = 220

VOCABULARY_SIZE: Final = 151936
_HEX_FIRST: Final = 300
_WORD_FIRST: Final = 1000
_TAPE_LENGTH: Final = 1 << 14
_ODD_WORDS: Final = (
    " naïve",
    " 東京",
    " 🙂",
    ' "so"',
    " back\\slash",
    "\n",
    "\n\n",
    "\t",
    " a\u2028b",
    " Ω≈ç",
    " <b>",
    " 100%",
)


def _words() -> list[str]:
    onsets = ["b", "br", "d", "f", "g", "k", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "v"]
    vowels = ["a", "e", "i", "o", "u"]
    codas = ["", "n", "l", "s", "r", "nd"]
    return [f" {''.join(parts)}" for parts in itertools.product(onsets, vowels, codas)]


_WORDS: Final = [*_words(), " and", " of", " is", ", so", ", but"]


class _Pieces(dict[int, bytes]):
    def __missing__(self, token: int) -> bytes:
        return b""


PIECES: Final = _Pieces(
    {byte: bytes([byte]) for byte in range(256)}
    | {_HEX_FIRST + byte: b"%02x" % byte for byte in range(256)}
    | {_WORD_FIRST + place: word.encode() for place, word in enumerate((*_WORDS, *_ODD_WORDS))}
    | {
        DOT: b".",
        COLON: b":",
        NEWLINE: b"\n",
        BLANK_LINE: b"\n\n",
        SPACE: b" ",
        OK: b"OK",
        ANSWER: b"answer",
        THOUGHT: b"thought",
        ASSISTANT: b"assistant",
        IM_START: b"<|im_start|>",
        IM_END: b"<|im_end|>",
        TOOL_OPEN: b"<tool_call>",
        TOOL_CLOSE: b"</tool_call>",
        THINK_OPEN: b"<think>",
        THINK_CLOSE: b"</think>",
    }
)
"""What each id says; an unknown one nothing."""


def _tape() -> tuple[int, ...]:
    dice = random.Random("regen_sim")
    words = range(_WORD_FIRST, _WORD_FIRST + len(_WORDS))
    odd = range(words.stop, words.stop + len(_ODD_WORDS))
    return tuple(dice.choice(odd if dice.random() < 0.02 else words) for _ in range(_TAPE_LENGTH))


_TAPE: Final = _tape()


def words(start: int, count: int) -> tuple[int, ...]:
    """``count`` words of an endless text, from a place of it; nothing in it repeats itself soon."""
    first = start % _TAPE_LENGTH
    chunk = _TAPE[first : first + count]
    return chunk if len(chunk) == count else chunk + words(0, count - len(chunk))


def hex_ids(digest: str) -> list[int]:
    """The ids of a digest in hex, two digits to a token."""
    return [_HEX_FIRST + byte for byte in bytes.fromhex(digest)]


def spell(text: str) -> list[int]:
    """Any text, byte by byte."""
    return list(text.encode())


def decode(ids: Iterable[int]) -> str:
    """The text; half a character becomes U+FFFD."""
    return b"".join(map(PIECES.__getitem__, ids)).decode("utf-8", "replace")


def place_of(token: int, ids: Sequence[int]) -> int:
    """Where ``token`` first is in ``ids``, or -1."""
    try:
        return ids.index(token)
    except ValueError:
        return -1
