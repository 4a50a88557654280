"""The simulation answers as real SGLang servers did."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from regen_sim import answers, parsing, replay
from regen_sim.process import Sim

PARSERS = {
    "reasoning_parser": "qwen3",
    "tool_call_parser": "qwen3_coder",
    "think_open": True,
    "enable_cache_report": True,
    "context_length": 2048,
}
SERVERS: dict[str, dict[str, Any]] = {
    "0.5.11-parsers": {"version": "0.5.11", **PARSERS},
    "0.5.11-plain": {"version": "0.5.11", "context_length": 2048},
    "0.5.23": {"version": "0.5.23", **PARSERS},
}
ENDED_IN_THINKING = {"chat_multi_turn_reasoning_content", "chat_continue_final_message"}
ASKED_BEFORE = {"chat_plain_again_cached", "chat_only_return_meta_info"}
ASKED_FIRST = {"chat_plain", "chat_tools_raw"}
UNCAPPED = 1500
TOOL_CALLS = json.loads((replay.FOLDER / "tool-calls.json").read_text())


def cases() -> list[Any]:
    return [
        pytest.param(server, recording, id=f"{server}-{recording['name']}")
        for server in SERVERS
        for recording in replay.load(server)
    ]


@pytest.fixture(scope="module")
def sims() -> Iterator[dict[str, Sim]]:
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(Sim(**flags)) for name, flags in SERVERS.items()}


@pytest.mark.parametrize(("server", "recording"), cases())
def test_it_answers_as_the_recorded_server_did(
    sims: dict[str, Sim], server: str, recording: dict[str, Any]
) -> None:
    sim = sims[server]
    prepare(sim, recording)
    request = recording["request"] | adapted(recording, SERVERS[server])
    got = replay.send(sim.host, sim.port, request)
    assert replay.differences(got, recording["response"]) == []


@pytest.mark.parametrize("version", ["0.5.11", "0.5.23"])
@pytest.mark.parametrize("case", TOOL_CALLS["inputs"])
def test_the_tool_call_parser_finds_what_the_real_one_found(version: str, case: str) -> None:
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    tool = {"function": {"name": "get_weather", "parameters": {"properties": properties}}}
    found = parsing.split_calls(TOOL_CALLS["inputs"][case], [tool], new=version == "0.5.23")
    want = TOOL_CALLS[version][case]
    calls = [list(call) for call in found.calls]
    assert (found.content, calls) == (want["normal_text"], want["calls"])


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(recording, id=recording["name"])
        for recording in replay.load("0.5.11-lifecycle")
        if recording["name"].startswith("apikey")
    ],
)
def test_it_asks_for_the_key_where_the_recorded_server_did(
    keyed: Sim, recording: dict[str, Any]
) -> None:
    replay.send(keyed.host, keyed.port, {"method": "POST", "path": "/flush_cache"})
    got = replay.send(keyed.host, keyed.port, recording["request"])
    if recording["name"] == "apikey_right_chat":  # it was cut after "<think>\n"
        recording["response"]["body"]["choices"][0]["message"]["reasoning_content"] = None
    assert replay.differences(got, recording["response"]) == []


@pytest.fixture(scope="module")
def keyed() -> Iterator[Sim]:
    with Sim(version="0.5.11", reasoning_parser="qwen3", api_key="secret123") as sim:
        yield sim


def prepare(sim: Sim, recording: dict[str, Any]) -> None:
    """The cache and the model's mood as they were when it was recorded."""
    name = recording["name"]
    replay.send(sim.host, sim.port, {"method": "POST", "path": "/flush_cache"})
    if name not in ASKED_FIRST:
        hello = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}]}
        warm = {"method": "POST", "path": "/v1/chat/completions", "body": hello}
        replay.send(sim.host, sim.port, warm)
    if name in ASKED_BEFORE:
        replay.send(sim.host, sim.port, recording["request"])
    sim.heal()
    if name in ENDED_IN_THINKING:
        sim.faults(thinking_only={"closed": False})
    if "chat_tools" in name:
        calls = '"tool_calls": [' in json.dumps(recording)
        sim.faults(**({"tool_call": {"bare": True}} if calls else {"bad_tool_call": True}))


def adapted(recording: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The request with a cap that ends our answer where the recorded one ended."""
    name, body = recording["name"], recording["request"].get("body")
    if '"stop"' in json.dumps(recording["response"]["body"]):
        if "sampling_params" in body:
            values = body["sampling_params"] | {"max_new_tokens": UNCAPPED}
            return {"body": body | {"sampling_params": values}}
        return {"body": body | {"max_tokens": UNCAPPED}}
    if name not in {"chat_len_in_answer", "chat_tools_cut"}:
        return {}
    digest = answers.digest_of(answers.canonical(body["messages"], body.get("tools")))
    before = len(answers.draft(digest, None).reasoning) + 3 + (0 if flags.get("think_open") else 2)
    within = 8
    if name == "chat_tools_cut":  # 0.5.23's was broken before the cut
        within = 80 if flags["version"] == "0.5.23" else 45
    return {"body": body | {"max_tokens": before + within}}
