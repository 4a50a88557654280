"""Answers as recorded from SGLang, and everything that only looks like one."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_consumer.engine import answer
from regen_consumer.engine.answer import Response
from regen_consumer.engine.faults import Blame, Fault
from regen_consumer.engine.split import Opening
from regen_consumer.record import Usage

RECORDED = orjson.loads((Path(__file__).parent / "recorded_answers.json").read_bytes())
JSON = {"content-type": "application/json"}
INSIDE, MODEL, NONE = Opening.INSIDE, Opening.MODEL, Opening.NONE


def read(body, *, status=200, headers=JSON, opening=MODEL, model="tiny"):
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return answer.read(Response(status, headers, raw, 0.1), model=model, opening=opening)


def body_of(message, **changes):
    choice = {"index": 0, "message": message, "finish_reason": "stop", "matched_stop": 151645}
    return {"id": "x", "model": "tiny", "choices": [choice | changes]}


THOUGHT = "The user asks for a sum. Two plus two is four."
CALL_THOUGHT = "I should call the weather tool."
SPLIT = [
    # case, opening -> reasoning, content, glue
    (
        "v0.5.11-parsers/chat_skip_special_false_no_trim_separate_false",
        INSIDE,
        (THOUGHT, "2 + 2 = 4.", ("", "\n</think>\n\n", "<|im_end|>")),
    ),
    (
        "v0.5.23/chat_skip_special_false_no_trim_separate_false",
        INSIDE,
        (THOUGHT, "2 + 2 = 4.", ("", "\n</think>\n\n", "<|im_end|>")),
    ),
    (
        "v0.5.11-no-parsers/chat_skip_special_false_no_trim_separate_false",
        MODEL,
        (THOUGHT, "2 + 2 = 4.", ("<think>\n", "\n</think>\n\n", "<|im_end|>")),
    ),
    (
        "v0.5.11-parsers/chat_len_in_thinking_separate_false",
        INSIDE,
        ("The user asks for a", None, ("", "", "")),
    ),
    (
        "v0.5.11-no-parsers/chat_len_in_thinking_separate_false",
        MODEL,
        ("The user asks", None, ("<think>\n", "", "")),
    ),
    ("v0.5.11-no-parsers/chat_thinking_false", NONE, (None, "2 + 2 = 4.", ("", "", ""))),
    ("v0.5.11-no-parsers/chat_stop_str_no_trim", NONE, (None, "Red, ", ("", "", "green"))),
    (
        "v0.5.11-parsers/chat_tools_auto_separate_false",
        INSIDE,
        (CALL_THOUGHT, "", None),  # the call was taken out of the text
    ),
    ("v0.5.11-parsers/chat_tools_auto_nothink", NONE, (None, None, None)),
    ("v0.5.11-parsers/chat_separate_reasoning_true", MODEL, (THOUGHT + "\n", "2 + 2 = 4.", None)),
    ("v0.5.11-parsers/chat_len_in_thinking", MODEL, ("The user asks for a", None, None)),
    ("v0.5.23/chat_len_in_thinking", MODEL, ("The user asks for a", "", None)),
]


@pytest.mark.parametrize(("case", "opening", "expected"), SPLIT, ids=[row[0] for row in SPLIT])
def test_a_recorded_answer_has_its_parts_to_the_byte(case, opening, expected):
    got = read(RECORDED[case], opening=opening).completion
    assert (got.reasoning, got.content, got.glue) == expected


def test_a_recorded_tool_call_is_kept_as_the_engine_parsed_it():
    completion = read(RECORDED["v0.5.11-parsers/chat_tools_auto_nothink"]).completion
    assert completion.finish_reason == "tool_calls"
    assert completion.tool_calls[0]["function"]["name"] == "get_weather"


def test_a_call_that_the_engine_left_in_the_text_stays_there():
    completion = read(RECORDED["v0.5.11-no-parsers/chat_tools_auto"]).completion
    assert completion.tool_calls is None
    assert completion.content.startswith("<tool_call>\n<function=get_weather>")


def test_usage_weight_version_and_ids_are_read_where_the_engine_gives_them():
    got = read(RECORDED["v0.5.23/chat_only_return_token_ids"])
    assert got.usage == Usage(
        prompt_tokens=17, completion_tokens=4, cached_tokens=0, reasoning_tokens=4
    )
    assert got.weight_version == "default"
    assert got.completion.output_ids == [785, 1196, 17064, 369]
    assert len(got.completion.prompt_ids) == 17


def test_vllm_s_ids_and_reasoning_are_read_under_its_names():
    body = body_of({"reasoning": "Hm.", "content": "Hi."}, token_ids=[1, 2])
    completion = read(body | {"prompt_token_ids": [3]}).completion
    assert (completion.reasoning, completion.prompt_ids, completion.output_ids) == (
        "Hm.",
        [3],
        [1, 2],
    )


@pytest.mark.parametrize(
    "usage",
    [None, {}, [], {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": "9"}, 7],
)
def test_an_answer_without_usable_counts_is_an_answer_with_null_counts(usage):
    got = read(body_of({"content": "Hi."}) | {"usage": usage})
    assert got.usage == Usage()


def test_no_counted_thinking_tokens_beside_thinking_is_unknown():
    counts = {"reasoning_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}
    got = read(body_of({"content": "a</think>b"}) | {"usage": counts})
    assert (got.usage.reasoning_tokens, got.usage.cached_tokens) == (None, 0)
    assert read(body_of({"content": "b"}) | {"usage": counts}).usage.reasoning_tokens == 0


@pytest.mark.parametrize(
    "message",
    [
        {"content": ""},
        {"content": None, "reasoning_content": "Hm."},
        {"content": None, "tool_calls": [{"id": "c"}]},
        {"content": "", "reasoning_content": ""},
    ],
)
def test_an_answer_that_says_nothing_is_still_an_answer(message):
    assert read(body_of(message)).completion.finish_reason == "stop"


HTML = {"content-type": "text/html"}
GOOD = body_of({"content": "Hi."})
INVALID = [
    ("null content", orjson.dumps(body_of({"content": None})), JSON),
    ("no content", orjson.dumps(body_of({})), JSON),
    ("no message", orjson.dumps(body_of(None)), JSON),
    ("content is a list", orjson.dumps(body_of({"content": ["Hi."]})), JSON),
    ("calls are a text", orjson.dumps(body_of({"content": "", "tool_calls": "x"})), JSON),
    ("no choices", orjson.dumps({"model": "tiny"}), JSON),
    ("empty choices", orjson.dumps({"model": "tiny", "choices": []}), JSON),
    ("choice is null", orjson.dumps({"model": "tiny", "choices": [None]}), JSON),
    ("no finish", orjson.dumps(body_of({"content": "Hi."}, finish_reason=None)), JSON),
    ("finish is a list", orjson.dumps(body_of({"content": "Hi."}, finish_reason=["stop"])), JSON),
    ("unknown finish", orjson.dumps(body_of({"content": ""}, finish_reason="filter")), JSON),
    ("no JSON", b'{"choices": [', JSON),
    ("empty body", b"", JSON),
    ("a JSON list", b"[]", JSON),
    ("no UTF-8", b'{"choices":[{"message":{"content":"\xff"},"finish_reason":"stop"}]}', JSON),
    (
        "lone surrogate",
        b'{"choices":[{"message":{"content":"\\ud83d"},"finish_reason":"stop"}]}',
        JSON,
    ),
    ("HTML", b"<html></html>", HTML),
    ("JSON sent as HTML", orjson.dumps(GOOD), HTML),
    ("no content-type", orjson.dumps(GOOD), {}),
    ("another model", orjson.dumps(GOOD | {"model": "other"}), JSON),
]


@pytest.mark.parametrize(
    ("body", "headers"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_what_is_not_exactly_an_answer_is_a_fault(body, headers):
    with pytest.raises(Fault) as caught:
        read(body, headers=headers)
    assert caught.value.klass == "invalid_answer"
    assert caught.value.blame is Blame.UNSURE


@pytest.mark.parametrize(
    "case", ["v0.5.11-lifecycle/abort_queued_client", "v0.5.11-lifecycle/abort_running_chat_client"]
)
def test_an_aborted_answer_is_no_answer_although_its_status_is_200(case):
    with pytest.raises(Fault) as caught:
        read(RECORDED[case])
    assert caught.value.klass == "aborted"


def test_an_answer_of_no_parts_at_all_is_no_answer():
    with pytest.raises(Fault, match="neither content"):
        read(RECORDED["v0.5.11-lifecycle/apikey_right_chat"])


def test_an_error_inside_a_200_is_the_engine_s_error():
    with pytest.raises(Fault) as caught:
        read({"error": {"message": "scheduler died"}})
    assert caught.value.klass == "engine_error"
    assert "scheduler died" in str(caught.value)


def test_a_dated_name_of_the_model_asked_for_is_that_model():
    assert read(GOOD | {"model": "tiny-2026-01-01"}).model == "tiny-2026-01-01"


def test_sglang_echoes_any_name_so_asking_for_the_wrong_one_shows_nothing():
    got = read(RECORDED["v0.5.23/err_unknown_model"], model="does-not-exist")
    assert got.model == "does-not-exist"


def test_a_refusal_is_classified():
    with pytest.raises(Fault) as caught:
        read(
            {"message": "The input (9 tokens) is longer than the model's context length"},
            status=400,
        )
    assert caught.value.klass == "context_length"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "content",
                    "finish_reason",
                    "usage",
                    "tool_calls",
                    "model",
                    "error",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def outcome(body):
    """The class of the fault, or ``answer``."""
    try:
        got = read(body)
    except Fault as fault:
        return fault.klass
    assert got.completion.content is None or isinstance(got.completion.content, str)
    return "answer"


@given(value=json_values)
def test_no_json_at_all_makes_the_reader_break(value):
    assert outcome(value) in ("invalid_answer", "aborted", "engine_error")


@given(message=json_values, stop=json_values, usage=json_values)
def test_no_answer_of_odd_parts_makes_the_reader_break(message, stop, usage):
    body = body_of(message, matched_stop=stop) | {"usage": usage}
    assert outcome(body) in ("invalid_answer", "answer")
