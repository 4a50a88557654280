"""What is wrong with an answer, by small rules on its text and its token counts. Pure.

=================== ==============================================================================
label               rule
=================== ==============================================================================
empty               no content, no thinking and no tool call: only white space, if anything
trivial             a whole answer that says nothing, see :func:`_is_trivial`
thinking_only       ended by itself, with thinking and without content or tool call
truncated           ended by the cap
truncated_thinking  the same, before the thinking was closed
=================== ==============================================================================
"""

from typing import Final

from regen_common.records.labels import LABELS
from regen_consumer.engine import split
from regen_consumer.record import Completion, Usage

TRIVIAL_TOKENS_MAX: Final = 10
"""An empty thinking block, "OK." and the end are 6 or 7 tokens. A one-word answer after real
thinking ("The capital of France is Paris.") has more, thinking included."""

TRIVIAL_CHARS_MAX: Final = 20
"""The same where the engine counts no tokens: characters of thinking and content together."""

ACKNOWLEDGEMENTS: Final = frozenset(
    {
        "alright",
        "certainly",
        "done",
        "got it",
        "i see",
        "i understand",
        "noted",
        "of course",
        "ok",
        "okay",
        "sure",
        "sure thing",
        "thank you",
        "thanks",
        "understood",
        "will do",
    }
)
"""Said instead of an answer. "Yes" and "no" are not here: they may be one."""


def labels(completion: Completion, usage: Usage, *, thinks: bool) -> tuple[str, ...]:
    """The labels that apply, in the order of ``LABELS``. ``thinks``: so the engine should."""
    cut = completion.finish_reason == "length"
    silent = _is_blank(completion.content) and not completion.tool_calls
    thought = not _is_blank(completion.reasoning)
    found = {
        "empty": silent and not thought,
        "trivial": not silent and not cut and _is_trivial(completion, usage, thinks=thinks),
        "thinking_only": silent and thought and not cut,
        "truncated": cut,
        "truncated_thinking": cut and silent and _is_inside_thinking(completion),
    }
    return tuple(label for label in LABELS if found.get(label))


def _is_trivial(completion: Completion, usage: Usage, *, thinks: bool) -> bool:
    """Says it nothing? Two rules, because a short answer may well be right.

    From any engine: a mere acknowledgement without thinking; so "Paris." and "42" are none. From
    an engine that thinks: the whole answer, thinking included, is a few tokens; so "4" after real
    thinking is none.
    """
    if completion.tool_calls:
        return False
    content, reasoning = completion.content or "", completion.reasoning or ""
    if _is_blank(reasoning) and _is_acknowledgement(content):
        return True
    if usage.completion_tokens is not None:
        return thinks and usage.completion_tokens <= TRIVIAL_TOKENS_MAX
    return thinks and len(reasoning) + len(content) <= TRIVIAL_CHARS_MAX


def _is_acknowledgement(text: str) -> bool:
    """One of ACKNOWLEDGEMENTS, or nothing but punctuation."""
    letters = "".join(c if c.isalnum() else " " for c in text.casefold())
    words = " ".join(letters.split())
    return not words or words in ACKNOWLEDGEMENTS


def _is_inside_thinking(completion: Completion) -> bool:
    """Was the cut before the end of the thinking? Without glue a missing content tells it."""
    if completion.reasoning is None:
        return False
    return completion.glue is None or split.CLOSE not in completion.glue[1]


def _is_blank(text: str | None) -> bool:
    return not text or text.isspace()
