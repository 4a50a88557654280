"""What is remarkable about a prompt's text. It is kept as it is, to the byte, and flagged."""

import re
from collections.abc import Iterator
from typing import Final

_SPECIAL = re.compile(
    r"<\|[^\s|<>]{1,40}\|>"  # ChatML and most families since
    r"|<\uff5c[^\uff5c\n]{1,40}\uff5c>"  # DeepSeek's, with full-width bars
    r"|</?s>|\[/?INST\]|<</?SYS>>"  # Llama 2, Mistral
    r"|<(?:start|end)_of_turn>"  # Gemma
    r"|</?tool_(?:call|response)>"
)
_SWITCH = re.compile(r"(?<![\w/<])/(?:no_)?think\b")

_TESTS: Final = (
    ("special_tokens", ("<", "["), _SPECIAL),
    ("think_tag", ("think>",), re.compile(r"</?think>")),
    ("think_switch", ("think",), _SWITCH),
    ("nul", ("\0",), re.compile("\0")),
)


def flags(text: str) -> Iterator[str]:
    """The names of what is in the text: ``special_tokens`` ``think_tag`` ``think_switch``
    ``nul``."""
    for name, needed, pattern in _TESTS:
        for word in needed:
            if word in text:
                if pattern.search(text):
                    yield name
                break
