import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regen_consumer import record as r

KEYS = [
    "index",
    "id",
    "source",
    "run",
    "round",
    "attempt",
    "prompt_sha256",
    "category",
    "multi_turn",
    "messages",
    "tools",
    "completion",
    "turns",
    "usage",
    "quality",
    "sampling",
    "engine",
    "started_at",
    "latency_s",
]


def make(
    content: str | None = "hi", messages: bytes = b'[{"role":"user","content":"x"}]'
) -> r.Record:
    return r.Record(
        index=3,
        id="a",
        source="f.jsonl:3",
        run="regen",
        round=0,
        attempt=1,
        prompt_sha256="00",
        category="chat",
        multi_turn=False,
        messages=orjson.Fragment(messages),
        tools=None,
        completion=r.Completion(
            reasoning=None,
            content=content,
            glue=("", "", ""),
            tool_calls=None,
            finish_reason="stop",
            matched_stop=None,
        ),
        turns=None,
        usage=r.Usage(),
        quality=[],
        sampling={"temperature": 1.0, "max_tokens": 9},
        engine=r.EngineFacts(
            host="h", gpu=0, kind="sglang", model=None, weight_version=None, version=None
        ),
        started_at="2026-12-01T00:00:00.000Z",
        latency_s=1.5,
    )


def test_keys_stand_in_the_order_of_the_contract() -> None:
    tree = json.loads(r.encode(make()))
    assert list(tree) == KEYS
    assert list(tree["completion"]) == [
        "reasoning",
        "content",
        "glue",
        "tool_calls",
        "finish_reason",
        "matched_stop",
        "prompt_ids",
        "output_ids",
    ]
    assert list(tree["usage"]) == [
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "reasoning_tokens",
    ]
    assert list(tree["engine"]) == [
        "host",
        "gpu",
        "kind",
        "model",
        "weight_version",
        "version",
        "spec_accept_length",
    ]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_and_never_breaks_the_line(text: str) -> None:
    body = json.dumps([{"role": "user", "content": text}], ensure_ascii=False).encode()
    line = r.encode(make(content=text, messages=body))
    assert len(line.decode().splitlines()) == 1
    tree = json.loads(line)
    assert tree["completion"]["content"] == text
    assert tree["messages"][0]["content"] == text


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(TypeError):
        r.encode(make(content="a\ud800"))
