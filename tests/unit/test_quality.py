"""Which labels an answer gets."""

import pytest

from regen_consumer import quality
from regen_consumer.record import Completion, Usage

CLOSED = ("", "\n</think>\n\n", "<|im_end|>")
EMPTY_BLOCK = ("<think>\n\n", "</think>\n\n", "<|im_end|>")
CALL = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


def labels(reasoning, content, *, tokens=None, thinks=True, finish="stop", glue=None, calls=None):
    completion = Completion(
        reasoning=reasoning,
        content=content,
        glue=glue,
        tool_calls=calls,
        finish_reason=finish,
        matched_stop=None,
    )
    return quality.labels(completion, Usage(completion_tokens=tokens), thinks=thinks)


THINKING = [
    # reasoning, content, completion tokens -> labels
    ("", "OK.", 6, ("trivial",)),  # the founding run's
    ("", "OK.", 7, ("trivial",)),
    ("", "OK.", None, ("trivial",)),
    ("", "Paris.", 7, ("trivial",)),  # it should have thought
    ("", "Okay, sure!", 40, ()),
    ("", " Got it! ", 40, ("trivial",)),
    ("Two plus two is four.", "4", 14, ()),
    ("France; its capital is Paris.", "Paris.", 15, ()),
    ("The user only wants a confirmation.", "OK.", 14, ()),
    ("France; its capital is Paris.", "Paris.", None, ()),
    ("", "A long answer without any thinking, which is odd but no triviality.", 16, ()),
    ("", "", 3, ("empty",)),
    (None, None, 1, ("empty",)),
    (" \n", "\n", 3, ("empty",)),
    ("A lot of thought.", "", 9, ("thinking_only",)),
    ("A lot of thought.", None, 9, ("thinking_only",)),
    ("A lot of thought.", " \n ", 9, ("thinking_only",)),
]


@pytest.mark.parametrize(("reasoning", "content", "tokens", "expected"), THINKING)
def test_an_engine_that_thinks(reasoning, content, tokens, expected):
    assert labels(reasoning, content, tokens=tokens) == expected


PLAIN = [
    ("OK.", 3, ("trivial",)),
    ("Sure.", 3, ("trivial",)),
    ("Sure thing!", None, ("trivial",)),
    ("...", 2, ("trivial",)),
    ("👍", 2, ("trivial",)),
    ("Paris.", 3, ()),
    ("42", 2, ()),
    ("Yes.", 3, ()),
    ("No", 2, ()),
    ("東京", 2, ()),
    ("OK, here is the plan: first the tea.", 12, ()),
    ("", 1, ("empty",)),
    (None, None, ("empty",)),
    ("\u3000\n", 2, ("empty",)),
]


@pytest.mark.parametrize(("content", "tokens", "expected"), PLAIN)
def test_an_engine_that_does_not_think(content, tokens, expected):
    assert labels(None, content, tokens=tokens, thinks=False) == expected


CUT = [
    # reasoning, content, glue -> labels
    ("A long th", None, ("", "", ""), ("truncated", "truncated_thinking")),
    ("A long th", None, None, ("truncated", "truncated_thinking")),
    ("A long th", "", None, ("truncated", "truncated_thinking")),  # SGLang 0.5.23, parsed
    ("Thought.", "", ("", "\n</think>\n\n", ""), ("truncated",)),  # just before the answer
    ("Thought.", "Once upon a ti", CLOSED, ("truncated",)),
    (None, "Once upon a ti", ("", "", ""), ("truncated",)),
    (None, "OK", ("", "", ""), ("truncated",)),
    (None, "", ("", "", ""), ("empty", "truncated")),
]


@pytest.mark.parametrize(("reasoning", "content", "glue", "expected"), CUT)
def test_an_answer_that_was_cut(reasoning, content, glue, expected):
    assert labels(reasoning, content, finish="length", glue=glue, tokens=4) == expected


@pytest.mark.parametrize("thinks", [True, False])
def test_a_tool_call_is_an_answer_however_short(thinks):
    assert labels(None, None, calls=CALL, finish="tool_calls", tokens=5, thinks=thinks) == ()
    assert labels("Hm.", "", calls=CALL, finish="tool_calls", tokens=5, thinks=thinks) == ()


def test_the_founding_run_s_answer_is_caught_as_it_came():
    assert labels("", "OK.", glue=EMPTY_BLOCK, tokens=6) == ("trivial",)
    assert labels("", "OK.", glue=EMPTY_BLOCK, tokens=6, thinks=False) == ("trivial",)
