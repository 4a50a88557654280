"""What follows from an engine's answer to a probe."""

import pytest

from regen_consumer.engine import profile, split
from regen_consumer.engine.answer import Answer
from regen_consumer.engine.facts import Facts
from regen_consumer.engine.profile import Thinking, Wanted
from regen_consumer.engine.split import Opening
from regen_consumer.record import Completion, Usage

SGLANG = Facts(kind="sglang", server="sglang", models=("tiny",), has_metrics=True)
PLAIN = Facts(kind="openai", server="unknown", models=("tiny",))


def said(text, *, finish="stop"):
    """A probe's answer of this raw text."""
    parts = split.split(text, opening=Opening.MODEL, stopped=finish == "stop", matched_stop=151645)
    return answer(*parts, raw_text=text, finish=finish)


def answer(reasoning, content, glue=None, *, raw_text=None, finish="stop"):
    completion = Completion(
        reasoning=reasoning,
        content=content,
        glue=glue,
        tool_calls=None,
        finish_reason=finish,
        matched_stop=151645,
    )
    return Answer(
        completion=completion, usage=Usage(), raw_text=raw_text, model="tiny", weight_version=None
    )


PROBES = [
    # probe, supposed, off -> thinks, opening
    (said("Hm.\n</think>\n\nHi!<|im_end|>"), True, False, (True, Opening.INSIDE)),
    (said("Hm.\n</think>\n\nHi!<|im_end|>"), False, True, (True, Opening.INSIDE)),
    (said("<think>\nHm.\n</think>\n\nHi!"), False, False, (True, Opening.MODEL)),
    (said("<think>\nHm.", finish="length"), False, False, (True, Opening.MODEL)),
    (said("\n\n</think>\n\nOK.<|im_end|>"), True, False, (True, Opening.INSIDE)),
    (said("Hi!<|im_end|>"), True, False, (False, Opening.MODEL)),
    (said("Hi!<|im_end|>"), False, True, (False, Opening.NONE)),
    (said("Hm hm hm", finish="length"), True, False, (True, Opening.INSIDE)),
    (said("Hm hm hm", finish="length"), False, False, (False, Opening.MODEL)),
    (said("Hm hm hm", finish="length"), True, True, (False, Opening.NONE)),
    (answer("Hm.", "Hi!"), False, False, (True, Opening.MODEL)),
    (answer("Hm.", None, finish="length"), False, False, (True, Opening.MODEL)),
]


@pytest.mark.parametrize(("probed", "supposed", "off", "expected"), PROBES)
def test_thinking_is_judged_by_what_the_engine_did(probed, supposed, off, expected):
    assert profile.thinking_of(probed, supposed=supposed, off=off) == Thinking(*expected)


@pytest.mark.parametrize(
    ("probed", "template", "enough"),
    [
        (said("Hi!<|im_end|>"), None, True),
        (said("Hm hm hm", finish="length"), None, False),
        (said("Hm hm hm", finish="length"), "/models/template.jinja", False),
        (said("Hm hm hm", finish="length"), "{% for m in messages %}<think>", False),
        (said("Hm hm hm", finish="length"), "{% for m in messages %}", True),
        (said("<think>Hm hm hm", finish="length"), None, True),
        (answer("Hm hm", None, finish="length"), None, True),
    ],
)
def test_a_cut_probe_proves_something_only_with_a_trace_of_thinking(probed, template, enough):
    facts = Facts(kind="openai", server="unknown", models=("m",), chat_template=template)
    assert profile.proves_enough(probed, facts) is enough


@pytest.mark.parametrize(
    ("facts", "probed", "raw"),
    [
        (SGLANG, said("Hi!<|im_end|>"), True),
        (SGLANG, said("Hi!"), False),  # trimmed: what was asked for is not honoured
        (SGLANG, said("Hi", finish="length"), True),
        (SGLANG, answer("Hm.", "Hi!"), False),
        (PLAIN, said("Hi!<|im_end|>"), False),
    ],
)
def test_text_is_raw_only_if_it_shows_what_ended_it(facts, probed, raw):
    assert profile.is_raw(probed, facts) is raw


@pytest.mark.parametrize(
    ("thinking", "parser", "name", "supposed"),
    [
        ("auto", None, "tiny", False),
        ("auto", "qwen3", "tiny", True),
        ("auto", None, "Qwen3.6-27B", True),
        ("auto", None, "Qwen3-Coder-30B", False),
        ("off", "qwen3", "Qwen3.6-27B", False),
        ("on", None, "tiny", True),
    ],
)
def test_without_evidence_the_run_then_the_engine_then_the_model_s_name_tell(
    thinking, parser, name, supposed
):
    facts = Facts(kind="sglang", server="sglang", models=(name,), reasoning_parser=parser)
    wanted = Wanted(max_tokens=8, thinking=thinking)
    assert profile.supposed(facts, wanted, name) is supposed


def warned(facts=SGLANG, *, thinking="auto", raw=True, thinks=False):
    wanted = Wanted(max_tokens=8, thinking=thinking)
    return " / ".join(profile.warnings(facts, wanted, raw=raw, thinks=thinks))


def test_an_engine_as_it_should_be_gives_no_warning():
    assert warned() == ""


def test_each_thing_that_would_hurt_later_is_said_now():
    parsing = Facts(kind="sglang", server="sglang", models=("m",), tool_call_parser="qwen3_coder")
    assert "--tool-call-parser qwen3_coder" in warned(parsing)
    assert "glue" in warned(raw=False)
    blind = Facts(kind="sglang", server="sglang", models=("m",), has_metrics=False)
    assert "--enable-metrics" in warned(blind)
    assert "thinking is on" in warned(thinking="on")
    assert "thinking is off" in warned(thinking="off", thinks=True)


def test_a_run_s_configuration_says_what_is_wanted():
    values = {
        "max_tokens": 9,
        "thinking": "off",
        "sampling": {"top_k": 5},
        "chat_template_kwargs": {"a": 1},
        "extra_body": {"b": 2},
    }
    wanted = profile.wanted_of(values, model="tiny")
    assert wanted == Wanted(
        model="tiny",
        max_tokens=9,
        thinking="off",
        sampling={"top_k": 5},
        template_kwargs={"a": 1},
        extra_body={"b": 2},
    )
    assert [Wanted(max_tokens=1, thinking=t).thinking_flag for t in ("on", "off", "auto")] == [
        True,
        False,
        None,
    ]
