"""What is sent, to which kind of server."""

import orjson
import pytest

from regen_common import errors
from regen_consumer.engine import request
from regen_consumer.engine.request import LLAMA_CPP, OPENAI, SGLANG, VLLM, Question

MESSAGES = [{"role": "user", "content": "naïve \u2028 🙂"}]
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]
SAMPLING = {
    "temperature": 1.0,
    "top_p": 0.95,
    "top_k": 20,
    "min_p": 0.0,
    "presence_penalty": 1.5,
    "repetition_penalty": 1.0,
}


def sent(dialect, **changes):
    question = Question(
        **{
            "model": "m",
            "messages": orjson.dumps(MESSAGES),
            "tools": None,
            "sampling": SAMPLING,
            "max_tokens": 8192,
            **changes,
        }
    )
    return orjson.loads(request.body(question, dialect, rid="r" * 32))


def test_sglang_is_asked_for_the_raw_text_with_explicit_sampling():
    assert sent(SGLANG) == {
        "model": "m",
        "messages": MESSAGES,
        "max_tokens": 8192,
        **SAMPLING,
        "rid": "r" * 32,
        "separate_reasoning": False,
        "skip_special_tokens": False,
        "no_stop_trim": True,
    }


def test_a_plain_openai_server_gets_plain_openai_fields_only():
    assert sent(OPENAI) == {
        "model": "m",
        "messages": MESSAGES,
        "max_tokens": 8192,
        "temperature": 1.0,
        "top_p": 0.95,
        "presence_penalty": 1.5,
    }


def test_llama_cpp_gets_its_own_name_for_the_repetition_penalty():
    body = sent(LLAMA_CPP)
    assert body["repeat_penalty"] == 1.0
    assert body["top_k"] == 20
    assert body["reasoning_format"] == "none"
    assert "repetition_penalty" not in body


def test_vllm_gets_all_sampling_under_our_names():
    assert SAMPLING.items() <= sent(VLLM).items()


@pytest.mark.parametrize("dialect", [SGLANG, OPENAI, LLAMA_CPP])
def test_messages_and_tools_go_out_byte_for_byte(dialect):
    messages = b'[ {"content":"\\u00e9",  "role":"user"} ]'
    question = Question(model="m", messages=messages, tools=b"[1, 2]", sampling={}, max_tokens=1)
    raw = request.body(question, dialect, rid="r")
    assert b'"messages":' + messages in raw
    assert b'"tools":[1, 2]' in raw


def test_token_ids_are_asked_for_only_where_the_engine_has_them():
    asking = request.Dialect(raw_text=True, token_ids=True)
    assert sent(asking)["return_token_ids"] is True
    assert "return_token_ids" not in sent(SGLANG)


@pytest.mark.parametrize(
    ("thinking", "own", "kwargs"),
    [
        (None, {}, None),
        (True, {}, {"enable_thinking": True}),
        (False, {}, {"enable_thinking": False}),
        (None, {"lang": "de"}, {"lang": "de"}),
        (False, {"lang": "de"}, {"enable_thinking": False, "lang": "de"}),
        (False, {"enable_thinking": True}, {"enable_thinking": True}),
    ],
)
def test_thinking_is_named_only_where_somebody_decided_on_it(thinking, own, kwargs):
    body = sent(SGLANG, thinking=thinking, template_kwargs=own)
    assert body.get("chat_template_kwargs") == kwargs


def test_seed_and_tools_are_sent_where_given():
    body = sent(SGLANG, seed=7, tools=orjson.dumps(TOOLS))
    assert (body["seed"], body["tools"]) == (7, TOOLS)


def test_the_extra_body_has_the_last_word():
    body = sent(SGLANG, extra_body={"temperature": 0.1, "logit_bias": {"5": -1}})
    assert body["temperature"] == 0.1
    assert body["logit_bias"] == {"5": -1}


@pytest.mark.parametrize("name", sorted(request.OURS))
def test_the_extra_body_may_not_set_what_makes_answers_readable(name):
    with pytest.raises(errors.UsageError, match=name):
        request.check_extra_body({name: 1})
    request.check_extra_body({"temperature": 1})


def test_no_rid_is_a_prefix_of_another():
    rids = {request.new_rid() for _ in range(100)}
    assert {len(rid) for rid in rids} == {request.RID_LENGTH}
    assert len(rids) == 100
