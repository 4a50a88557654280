"""Misbehaviour on demand: what each fault looks like to a client, and whom it hits."""

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from regen_sim import answers, faults
from regen_sim.process import Sim, SimError

DEADLINE_S = 10.0
PROMPT = "What is 2+2?"
RAW = {"separate_reasoning": False, "skip_special_tokens": False, "no_stop_trim": True}
WANT = answers.expected([{"role": "user", "content": PROMPT}])


@pytest.fixture(scope="module")
def started() -> Iterator[Sim]:
    with Sim(think_open=True, reasoning_parser="qwen3", disconnect_s=0.01) as sim:
        yield sim


@pytest.fixture
def sim(started: Sim) -> Iterator[Sim]:
    yield started
    started.heal()


def choice(body: Any) -> Any:
    return body["choices"][0]


def raw_content(body: Any) -> Any:
    return choice(body)["message"]["content"]


ANSWERS: dict[str, tuple[dict[str, Any], Callable[[Any], bool]]] = {
    "trivial": ({}, lambda b: raw_content(b) == "\n</think>\n\nOK.<|im_end|>"),
    "trivial in six tokens": ({}, lambda b: b["usage"]["completion_tokens"] == 6),
    "empty": ({}, lambda b: raw_content(b) == "<|im_end|>"),
    "null_content": ({}, lambda b: raw_content(b) is None),
    "thinking_only": ({}, lambda b: raw_content(b).endswith("\n</think>\n\n<|im_end|>")),
    "thinking_only unclosed": ({"closed": False}, lambda b: "</think>" not in raw_content(b)),
    "truncated": ({}, lambda b: choice(b)["finish_reason"] == "length"),
    "abort": ({}, lambda b: choice(b)["finish_reason"] == "abort"),
    "loop": ({"tokens": 900}, lambda b: raw_content(b).count(raw_content(b)[-80:-20]) > 10),
    "stray_think": ({}, lambda b: raw_content(b).count("</think>") == 2),
    "short_for_tokens": (
        {"factor": 50},
        lambda b: b["usage"]["completion_tokens"] == 50 * WANT.tokens,
    ),
    "huge": ({"mb": 2}, lambda b: len(raw_content(b)) > 2 * 1024 * 1024),
    "tool_call": ({}, lambda b: "<tool_call>\n<function=look_up>" in raw_content(b)),
    "bad_tool_call": ({}, lambda b: "</parameter>\n3\n" in raw_content(b)),
    "no_tool_call": ({}, lambda b: "<tool_call>" not in raw_content(b)),
    "missing_choices": ({}, lambda b: "choices" not in b),
    "empty_choices": ({}, lambda b: b["choices"] == []),
    "usage_missing": ({}, lambda b: "usage" not in b),
    "usage_null": ({}, lambda b: b["usage"] is None),
    "usage_zero": ({}, lambda b: b["usage"]["completion_tokens"] == 0),
    "other_model": ({"model": "m2"}, lambda b: b["model"] == "m2"),
    "lone_surrogate": ({}, lambda b: raw_content(b).startswith("\ud800")),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_has_the_fault_asked_for_and_the_next_has_not(sim: Sim, case: str) -> None:
    args, shows = ANSWERS[case]
    name = case.partition(" ")[0]
    sim.faults(**{name: {"count": 1, **args}})
    got = sim.ask(PROMPT, **RAW)
    assert got.status == 200
    assert shows(got.body)
    after = sim.ask(PROMPT, **RAW).body
    assert raw_content(after) == f"{WANT.reasoning}\n</think>\n\n{WANT.content}<|im_end|>"
    assert after["usage"]["completion_tokens"] == WANT.tokens


REFUSALS = {
    "context_length": (400, "longer than the model's context length"),
    "template": (400, "System message must be at the beginning."),
    "bad_tools": (400, "Tool 0 function has invalid 'parameters' schema"),
    "bad_tool_args": (400, "expected a string key"),
    "bad_request": (400, "top_p must be in (0, 1], got 2.0."),
    "unauthorized": (401, "Unauthorized"),
    "forbidden": (403, "Forbidden"),
    "unknown_model": (404, "The model `tiny` does not exist."),
    "rate_limit": (429, "Rate limit reached"),
    "internal": (500, "Internal server error"),
    "queue_full": (503, "The request queue is full."),
    "proxy_html": (502, "<center>nginx</center>"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_has_its_status_and_words(sim: Sim, name: str) -> None:
    sim.faults(**{name: True})
    got = sim.ask(PROMPT)
    status, words = REFUSALS[name]
    assert got.status == status
    assert words in (got.body if isinstance(got.body, str) else json.dumps(got.body))


def test_a_rate_limit_may_say_when_to_come_back(sim: Sim) -> None:
    sim.faults(rate_limit={"retry_after": 7})
    assert sim.ask(PROMPT).headers["retry-after"] == "7"


def everything(sim: Sim) -> bytes:
    """All bytes that a chat request gets before the server closes the connection."""
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": PROMPT}]})
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    got = b""
    with socket.create_connection((sim.host, sim.port), timeout=DEADLINE_S) as client:
        client.sendall((head + body).encode())
        while part := client.recv(65536):
            got += part
    return got


def test_a_connection_can_be_cut_at_every_place(sim: Sim) -> None:
    whole = everything(sim)
    head, _, body = whole.partition(b"\r\n\r\n")
    sim.faults(cut_before=True)
    assert everything(sim) == b""
    sim.faults(cut_before=None, cut_headers=True)
    assert 0 < len(everything(sim)) < len(head)
    sim.faults(cut_headers=None, cut_body=True)
    got_head, _, got_body = everything(sim).partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in got_head
    assert 0 < len(got_body) < len(body)
    sim.faults(cut_body=None, short_body={"bytes": 10})
    got_head, _, got_body = everything(sim).partition(b"\r\n\r\n")
    assert f"content-length: {len(got_body) + 10}".encode() in got_head


@pytest.mark.parametrize("name", ["invalid_json", "invalid_utf8"])
def test_a_body_can_be_unreadable(sim: Sim, name: str) -> None:
    sim.faults(**{name: True})
    body = everything(sim).partition(b"\r\n\r\n")[2]
    with pytest.raises(ValueError, match=r"delimiter|codec|Expecting"):
        json.loads(body)


def test_a_hanging_request_is_never_answered_while_others_are(sim: Sim) -> None:
    sim.faults(hang={"marker": "HANG"})
    hanging = sim.ask_later("please HANG now", rid="hung")
    assert sim.ask(PROMPT).status == 200
    assert sim.send("GET", "/health").status == 200
    assert not hanging.done()
    sim.send("POST", "/abort_request", {"rid": "hung"})
    assert hanging.result(DEADLINE_S).body["usage"]["completion_tokens"] == 0


def test_a_hanging_request_may_make_the_server_unhealthy(sim: Sim) -> None:
    sim.faults(hang={"health": 503})
    hanging = sim.ask_later(PROMPT, rid="hung")
    assert sim.send("GET", "/health").status == 503
    sim.send("POST", "/abort_request", {"rid": "hung"})
    hanging.result(DEADLINE_S)
    assert sim.send("GET", "/health").status == 200


def test_a_marked_prompt_kills_the_server_and_its_neighbours_are_cut() -> None:
    with Sim(latency="fixed:60") as sim:
        sim.faults(die={"marker": "DIE", "after_s": 0})
        neighbour = sim.ask_later(PROMPT)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            sim.ask("DIE")
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            neighbour.result(DEADLINE_S)
        assert sim.wait() == 137
        assert sim.start().send("GET", "/health").status == 200


def test_health_can_be_down_flap_and_hang(sim: Sim) -> None:
    sim.faults(health_down={"status": 500})
    assert sim.send("GET", "/health").status == 500
    sim.faults(health_down=None, health_flap={"period_s": 0.2})
    statuses: set[int] = set()
    sim.until(lambda _: statuses.add(sim.send("GET", "/health").status) or len(statuses) == 2)
    assert statuses == {200, 503}
    sim.faults(health_flap=None, health_hang=True)
    connection = http.client.HTTPConnection(sim.host, sim.port, timeout=0.1)
    with contextlib.closing(connection):
        connection.request("GET", "/health")
        with pytest.raises(TimeoutError):
            connection.getresponse()


def test_metrics_can_be_away(sim: Sim) -> None:
    assert sim.send("GET", "/metrics").status == 200
    sim.faults(no_metrics=True)
    assert sim.send("GET", "/metrics").status == 404


def test_a_rate_hits_the_same_share_of_prompts_every_time(sim: Sim) -> None:
    sim.faults(queue_full={"rate": 0.3})
    first, second = ([sim.ask(f"Number {n}").status for n in range(200)] for _ in range(2))
    assert first == second
    assert 35 < first.count(503) < 85


def test_a_count_per_prompt_lets_the_second_try_pass(sim: Sim) -> None:
    sim.faults(internal={"per_prompt": 1})
    assert [sim.ask(text).status for text in "abab"] == [500, 500, 200, 200]


def test_a_count_is_for_the_next_requests_whichever_they_are(sim: Sim) -> None:
    sim.faults(internal={"count": 2})
    assert [sim.ask(text).status for text in "abcd"] == [500, 500, 200, 200]


def test_two_faults_of_one_name_can_have_a_marker_each(sim: Sim) -> None:
    sim.faults(bad_request=[{"marker": "A", "message": "a"}, {"marker": "B", "message": "b"}])
    said = [sim.ask(f"with {mark}").body.get("message") for mark in "ABC"]
    assert said == ["a", "b", None]


def test_only_the_last_user_text_is_searched_for_a_marker(sim: Sim) -> None:
    sim.faults(internal={"marker": "MARK"})
    earlier = [{"role": "user", "content": "MARK"}, {"role": "assistant", "content": "MARK"}]
    assert sim.ask([*earlier, {"role": "user", "content": "plain"}]).status == 200
    parts = [{"type": "text", "text": "MA"}, {"type": "text", "text": "RK"}]
    assert sim.ask([{"role": "user", "content": parts}]).status == 500


def test_what_does_not_exist_is_refused_and_changes_nothing(sim: Sim) -> None:
    sim.faults(internal={"rate": 0.5})
    for wrong in ({"no_such": True}, {"slow": {"no_such": 1}}, {"internal": None, "nope": None}):
        with pytest.raises(SimError, match="400"):
            sim.faults(**wrong)
    active = sim.send("GET", "/_sim/faults").body["active"]
    assert active == [{"name": "internal", "rate": 0.5}]


def test_the_command_line_takes_the_same_faults() -> None:
    fault = faults.parse("slow=marker=LATE,seconds=1.5,count=2,rate=0.25")
    assert (fault.name, fault.marker, fault.count, fault.rate) == ("slow", "LATE", 2, 0.25)
    assert fault.number("seconds", 0) == 1.5
    with Sim(fault=["internal=marker=X", "forbidden=marker=Y"]) as sim:
        assert [sim.ask(text).status for text in "XYZ"] == [500, 403, 200]


def test_hits_are_counted_by_name(sim: Sim) -> None:
    before = sim.stats()["fault_hits"].get("forbidden", 0)
    sim.faults(forbidden={"count": 3})
    for text in "abcde":
        sim.ask(text)
    assert sim.stats()["fault_hits"]["forbidden"] - before == 3
