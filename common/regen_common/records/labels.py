"""Quality labels, and their places in the mask that goes with a record through Redis.

A label's bit never changes its meaning: masks stand in open streams and in ledgers.
"""

from collections.abc import Iterable
from typing import Final

LABELS: Final = (
    "empty",  # no answer text at all
    "trivial",  # a few tokens, the "OK." kind
    "thinking_only",  # the model stopped by itself, with thinking and no answer
    "truncated",  # cut by the cap, wherever
    "truncated_thinking",  # beside `truncated`: the cut was inside the thinking
    "loop",  # the text repeats itself to the end
    "stray_think_tag",  # a thinking marker inside the answer
    "short_for_tokens",  # far less text than its tokens would make
)


def mask_of(labels: Iterable[str]) -> int:
    """The labels as bits: the first of LABELS is 1, the next 2, ..."""
    return sum(1 << LABELS.index(label) for label in set(labels))


def labels_of(mask: int) -> tuple[str, ...]:
    """The labels of a mask, in the order of LABELS."""
    return tuple(label for place, label in enumerate(LABELS) if mask >> place & 1)
