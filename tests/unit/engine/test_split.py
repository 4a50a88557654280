"""The raw text of an answer, split to the byte."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regen_consumer.engine.split import END_TOKENS, Opening, join, split

INSIDE, MODEL, NONE = Opening.INSIDE, Opening.MODEL, Opening.NONE
EOS = 151645

WHOLE = [
    # text, opening -> reasoning, content, glue
    ("Add.\n</think>\n\n7.<|im_end|>", INSIDE, "Add.", "7.", ("", "\n</think>\n\n", "<|im_end|>")),
    ("<think>\nAdd.\n</think>\n\n7.", MODEL, "Add.", "7.", ("<think>\n", "\n</think>\n\n", "")),
    (" \n<think>Add.</think>7.", MODEL, "Add.", "7.", (" \n<think>", "</think>", "")),
    ("\n\n</think>\n\nOK.<|im_end|>", INSIDE, "", "OK.", ("", "\n\n</think>\n\n", "<|im_end|>")),
    ("<think>\n\n</think>\n\nOK.", MODEL, "", "OK.", ("<think>\n\n", "</think>\n\n", "")),
    ("Add.\n</think>\n\n<|im_end|>", INSIDE, "Add.", "", ("", "\n</think>\n\n", "<|im_end|>")),
    ("a </think> b </think> c", INSIDE, "a", "b </think> c", ("", " </think> ", "")),
    ("a <think> b </think> c", INSIDE, "a <think> b", "c", ("", " </think> ", "")),
    ("never closed<|im_end|>", INSIDE, "never closed", None, ("", "", "<|im_end|>")),
    ("<think>\nnever closed", MODEL, "never closed", None, ("<think>\n", "", "")),
    ("<think>\nnever closed", NONE, "never closed", None, ("<think>\n", "", "")),
    ("A plain answer. \n<|im_end|>", NONE, None, "A plain answer. \n", ("", "", "<|im_end|>")),
    ("A plain answer.", MODEL, None, "A plain answer.", ("", "", "")),
    ("The tag </think> ends it.", NONE, None, "The tag </think> ends it.", ("", "", "")),
    ("late\n</think>\n\nyes", MODEL, "late", "yes", ("", "\n</think>\n\n", "")),
    ("<|im_end|>", NONE, None, "", ("", "", "<|im_end|>")),
    ("<|im_end|>", INSIDE, "", None, ("", "", "<|im_end|>")),
    ("", MODEL, None, "", ("", "", "")),
    ("two<|im_end|><|endoftext|>", NONE, None, "two<|im_end|>", ("", "", "<|endoftext|>")),
]


@pytest.mark.parametrize(("text", "opening", "reasoning", "content", "glue"), WHOLE)
def test_a_text_that_ended_by_itself_is_split_at_its_first_marker(
    text, opening, reasoning, content, glue
):
    assert split(text, opening=opening, stopped=True, matched_stop=EOS) == (
        reasoning,
        content,
        glue,
    )


def test_a_cut_inside_the_thinking_leaves_everything_thinking():
    cut = split("The user asks for \n", opening=INSIDE, stopped=False)
    assert cut == ("The user asks for \n", None, ("", "", ""))


def test_a_cut_text_keeps_what_looks_like_an_end_token():
    cut = split("say <|im_end|>", opening=NONE, stopped=False)
    assert cut.content == "say <|im_end|>"


@pytest.mark.parametrize(
    ("text", "matched", "content"),
    [
        ("<s>old</s>", None, "<s>old</s>"),  # no word of what ended it: may be HTML
        ("<s>old</s>", EOS, "<s>old"),
        ("Hi<|eot_id|>", None, "Hi"),
        ("Red, green", "green", "Red, "),
        ("Red, ", "green", "Red, "),  # the engine has taken it off
        ("Hi<|im_end|>", "###", "Hi<|im_end|>"),
        ("Hi", "", "Hi"),
    ],
)
def test_what_ended_the_turn_is_taken_off_only_where_it_did(text, matched, content):
    assert split(text, opening=NONE, stopped=True, matched_stop=matched).content == content


PIECES = ["<think>", "</think>", "\n", " ", "\u3000", "\x85", "word", "<", "é🙂", *END_TOKENS]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12).map("".join)


@given(
    text=texts,
    opening=st.sampled_from(Opening),
    stopped=st.booleans(),
    matched=st.none() | st.integers() | st.sampled_from(END_TOKENS) | st.text(max_size=3),
)
@example(text=" <think> </think> ", opening=INSIDE, stopped=True, matched=None)
@example(text="</think>", opening=MODEL, stopped=False, matched=None)
def test_nothing_is_lost_and_parts_that_do_not_exist_have_no_glue(text, opening, stopped, matched):
    parts = split(text, opening=opening, stopped=stopped, matched_stop=matched)
    before, between, after = parts.glue
    assert join(parts) == text
    assert not before or before.strip() == "<think>"
    assert not between or between.strip() == "</think>"
    assert bool(between) == (parts.reasoning is not None and parts.content is not None)
    assert stopped or not after
    if between:
        assert "</think>" not in (parts.reasoning or "")
        assert (parts.reasoning, parts.content) == (
            (parts.reasoning or "").rstrip(),
            (parts.content or "").lstrip(),
        )
