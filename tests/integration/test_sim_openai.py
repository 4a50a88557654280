"""The plain flavour: an OpenAI-compatible server that is no SGLang, shaped after llama.cpp's."""

from collections.abc import Iterator

import pytest

from regen_sim import answers
from regen_sim.process import Sim

PROMPT = "What is 2+2?"
WANT = answers.expected([{"role": "user", "content": PROMPT}])


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    with Sim(version="openai", model="plain-model", context_length=2048) as sim:
        yield sim


def test_it_has_health_and_models_and_nothing_of_sglang(sim: Sim) -> None:
    assert sim.send("GET", "/health").body == {"status": "ok"}
    models = sim.send("GET", "/v1/models").body
    assert [card["id"] for card in models["data"]] == ["plain-model"]
    assert "max_model_len" not in models["data"][0]
    for method, path in (
        ("GET", "/server_info"),
        ("GET", "/model_info"),
        ("GET", "/metrics"),
        ("GET", "/v1/loads"),
        ("POST", "/generate"),
        ("POST", "/abort_request"),
    ):
        assert sim.send(method, path).status == 404, path


def test_its_answer_has_no_field_that_only_sglang_gives(sim: Sim) -> None:
    body = sim.ask(PROMPT, separate_reasoning=False, no_stop_trim=True, rid="mine").body
    content = f"<think>\n{WANT.reasoning}\n</think>\n\n{WANT.content}"
    assert body["choices"] == [
        {
            "finish_reason": "stop",
            "index": 0,
            "message": {"role": "assistant", "content": content},
        }
    ]
    assert body["model"] == "plain-model"
    assert body["id"] != "mine"
    assert body["usage"]["total_tokens"] == WANT.tokens + 2 + body["usage"]["prompt_tokens"]


def test_with_a_reasoning_parser_the_thinking_has_its_own_field() -> None:
    with Sim(version="openai", reasoning_parser="auto") as sim:
        message = sim.ask(PROMPT).body["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"].strip()) == (
            WANT.content,
            WANT.reasoning,
        )


def test_it_refuses_in_llama_s_words(sim: Sim) -> None:
    long = sim.ask("hello " * 3000)
    assert (long.status, long.body["error"]["type"]) == (400, "exceed_context_size_error")
    missing = sim.send("POST", "/v1/chat/completions", {"model": "x"})
    assert missing.body["error"]["message"] == "'messages' is required"


def test_it_asks_for_its_key() -> None:
    with Sim(version="openai", api_key="secret") as sim:
        assert sim.ask(PROMPT).body["error"]["message"] == "Invalid API Key"
        assert sim.send("GET", "/health").status == 200
