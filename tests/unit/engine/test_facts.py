"""What engines say of themselves."""

from pathlib import Path

import orjson
import pytest

from regen_consumer.engine import facts, request

PAGES = orjson.loads((Path(__file__).parent / "recorded_pages.json").read_bytes())
OLD, NEW = PAGES["v0.5.11-parsers"], PAGES["v0.5.23"]

LLAMA_MODELS = {
    "object": "list",
    "data": [{"id": "smol", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 2048}}],
}
LLAMA_PROPS = {
    "default_generation_settings": {
        "params": {
            "temperature": 0.800000011920929,
            "top_k": 40,
            "top_p": 0.949999988079071,
            "min_p": 0.05000000074505806,
            "repeat_penalty": 1.0,
            "presence_penalty": 0.0,
            "stream": False,
        },
        "n_ctx": 2048,
    },
    "total_slots": 4,
    "chat_template": "{% for message in messages %}",
    "build_info": "b1-abc",
}


def of(pages, **changes):
    return facts.of_sglang(
        {**pages["server_info"], **changes}, pages["model_info"], pages["models"]
    )


def test_sglang_s_own_word_on_itself_is_read():
    found = of(OLD)
    assert (found.kind, found.server, found.version) == ("sglang", "sglang", "0.5.11")
    assert found.models == ("tiny",)
    assert found.weight_version == "default"
    assert found.context_length == 2048
    assert (found.reasoning_parser, found.tool_call_parser) == ("qwen3", "qwen3_coder")
    assert found.has_metrics is True
    assert found.speculative is None


def test_no_key_of_the_engine_is_recorded():
    assert "secret" not in str(of(OLD, api_key="secret"))


@pytest.mark.parametrize(
    ("version", "has_ids"),
    [("0.5.11", False), ("0.5.18", True), ("0.5.23", True), ("0.6.0rc1", True), (None, False)],
)
def test_token_ids_are_asked_of_versions_that_have_them(version, has_ids):
    assert of(OLD, version=version).dialect.token_ids is has_ids


def test_preferred_sampling_is_read_as_json_text_and_as_object():
    wanted = {"temperature": 0.6, "top_k": 20}
    assert of(OLD, preferred_sampling_params=wanted).sampling_defaults == wanted
    text = orjson.dumps(wanted).decode()
    assert of(OLD, preferred_sampling_params=text).sampling_defaults == wanted
    assert of(OLD, preferred_sampling_params="{").sampling_defaults == {}


def test_a_model_is_the_same_wherever_its_files_lie():
    here = of(NEW).identity("tiny")
    assert here == of(NEW, model_path="/dev/shm/other").identity("tiny")
    assert here != of(NEW, quantization="fp8").identity("tiny")
    assert here != of(NEW, chat_template="{{ other }}").identity("tiny")
    assert (here["name"], here["weight_version"]) == ("tiny", "default")


def test_llama_cpp_is_recognised_with_its_defaults():
    found = facts.of_openai(LLAMA_MODELS, LLAMA_PROPS)
    assert (found.kind, found.server, found.models) == ("openai", "llama.cpp", ("smol",))
    assert found.context_length == 2048
    assert found.max_running_requests == 4
    assert found.sampling_defaults == {
        "temperature": 0.8,
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
    }
    assert found.dialect is request.LLAMA_CPP


def test_vllm_is_recognised_by_its_models():
    models = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]}
    found = facts.of_openai(models, None, {"version": "0.11.0"})
    assert (found.server, found.version, found.context_length) == ("vllm", "0.11.0", 4096)


@pytest.mark.parametrize("page", [None, [], "x", {"data": None}, {"data": [None, {"id": 5}]}])
def test_odd_pages_leave_facts_unknown(page):
    found = facts.of_openai(page, page, page)
    assert (found.server, found.models, found.dialect) == ("unknown", (), request.OPENAI)


@pytest.mark.parametrize("page", [None, {"detail": "Not Found"}, {"version": "1"}, [1]])
def test_what_is_not_sglang_s_is_not_taken_for_it(page):
    assert not facts.is_sglang(page)
    assert facts.is_sglang(OLD["server_info"])
