"""The raw text of an answer, split into thinking and content, to the byte. Pure.

``before + reasoning + between + content + after`` is the raw text, always; a part that does not
exist is null and counts as empty.
"""

from enum import Enum
from typing import Final, NamedTuple

OPEN: Final = "<think>"
CLOSE: Final = "</think>"

END_TOKENS: Final = (
    "<|im_end|>",  # Qwen, SmolLM
    "<|endoftext|>",  # Qwen, GLM, Phi
    "<|eot_id|>",  # Llama 3
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",  # Phi
    "<|return|>",  # gpt-oss
    "<|call|>",
    "<|user|>",  # GLM stops at the next turn's role
    "<|observation|>",
    "<|END_OF_TURN_TOKEN|>",  # Command
    "<\uff5cend\u2581of\u2581sentence\uff5c>",  # DeepSeek
    "<end_of_turn>",  # Gemma
    "<eos>",
    "</s>",  # Llama 2, Mistral
)
"""What ends a turn, as text. Only the last one of a text is taken off."""

_UNMISTAKABLE: Final = tuple(token for token in END_TOKENS if token[1] in "|\uff5c")
"""No author writes these at the end of an answer, as may be with ``</s>`` in HTML."""


class Opening(Enum):
    """How the answers of an engine begin."""

    INSIDE = "inside"  # the chat template opens the thinking
    MODEL = "model"  # the model opens it itself, if it thinks
    NONE = "none"  # thinking is off: without a leading <think> there is none


class Parts(NamedTuple):
    """``glue`` is [before, between, after]."""

    reasoning: str | None
    content: str | None
    glue: tuple[str, str, str]


def split(
    text: str, *, opening: Opening, stopped: bool, matched_stop: int | str | None = None
) -> Parts:
    """Split at the first ``</think>``; markers and the white space around them go to the glue.

    ``stopped``: the model ended by itself, so that an end-of-turn token may stand last; it is taken
    off alone, white space before it stays. Without a marker the text is all thinking where it
    began inside it (it was cut, or the model never came out), else all content.
    """
    after = _end_of(text, matched_stop) if stopped else ""
    body = text[: len(text) - len(after)]
    before = _opening_of(body)
    rest = body[len(before) :]
    place = rest.find(CLOSE)
    if place >= 0 and (before or opening is not Opening.NONE):
        reasoning = rest[:place].rstrip()
        content = rest[place + len(CLOSE) :].lstrip()
        between = rest[len(reasoning) : len(rest) - len(content)]
        return Parts(reasoning, content, (before, between, after))
    if before or opening is Opening.INSIDE:
        return Parts(rest, None, (before, "", after))
    return Parts(None, rest, ("", "", after))


def join(parts: Parts) -> str:
    """The raw text again."""
    before, between, after = parts.glue
    return before + (parts.reasoning or "") + between + (parts.content or "") + after


def _opening_of(text: str) -> str:
    """A leading ``<think>`` with the white space around it, or nothing."""
    inner = text.lstrip()
    if not inner.startswith(OPEN):
        return ""
    return text[: len(text) - len(inner[len(OPEN) :].lstrip())]


def _end_of(text: str, matched_stop: int | str | None) -> str:
    """The token that ended the turn, as it stands at the end of the text.

    ``matched_stop`` is what the engine says ended it: a token id, a stop string, or nothing.
    """
    if isinstance(matched_stop, str):
        return matched_stop if text.endswith(matched_stop) else ""
    tokens = _UNMISTAKABLE if matched_stop is None else END_TOKENS
    return next((token for token in tokens if text.endswith(token)), "")
