"""What the simulation does when it is full, told to abort, told to end, or left by its clients."""

import http.client
import signal
import socket
from typing import Any

import pytest

from regen_sim import replay
from regen_sim.process import Sim

DEADLINE_S = 10.0
LONG = "fixed:60"
PROMPT = "What is 2+2?"


def recorded(version: str, name: str) -> dict[str, Any]:
    found = replay.load(f"{version}-lifecycle")
    return next(item["response"] for item in found if item["name"] == name)


def unhealthy(sim: Sim) -> bool:
    return sim.send("GET", "/health").status == 503


@pytest.mark.parametrize("version", ["0.5.11", "0.5.23"])
def test_a_full_queue_refuses_with_503_and_stays_healthy(version: str) -> None:
    with Sim(version=version, max_running=1, max_queued=1, latency=LONG) as sim:
        sim.ask_later(PROMPT)
        sim.ask_later(PROMPT)
        assert replay.differences(sim.ask(PROMPT), recorded(version, "queue_full_4")) == []
        assert sim.send("GET", "/health").status == 200
        assert (sim.stats()["running"], sim.stats()["waiting"]) == (1, 1)
        sim.send("POST", "/abort_request", {"abort_all": True})


def test_generate_meets_a_full_queue_in_the_same_words() -> None:
    with Sim(max_running=1, max_queued=0, latency=LONG) as sim:
        sim.ask_later(PROMPT)
        got = sim.send("POST", "/generate", {"text": "Hello"})
        assert replay.differences(got, recorded("0.5.11", "queue_full_generate")) == []
        sim.send("POST", "/abort_request", {"abort_all": True})


@pytest.mark.parametrize(
    ("version", "name"),
    [("0.5.11", "abort_running_chat_client"), ("0.5.23", "prefix_abort_job-1_client")],
)
def test_an_aborted_client_gets_200_and_the_text_so_far(version: str, name: str) -> None:
    flags = {"reasoning_parser": "qwen3", "enable_cache_report": True}
    think_open = version == "0.5.23"
    with Sim(version=version, latency="fixed:0.5", think_open=think_open, **flags) as sim:
        sim.faults(freeze=True)
        first = sim.ask_later(PROMPT, rid="job-1", ignore_eos=True, max_tokens=1500)
        other = sim.ask_later("Else?", rid="other", ignore_eos=True, max_tokens=1500)
        sim.faults(freeze=None)
        sim.until(lambda seen: seen["generated_tokens"] > 1400)
        sim.faults(freeze=True)
        call = sim.send("POST", "/abort_request", {"rid": "job"})
        assert replay.differences(call, recorded(version, "prefix_abort_call")) == []
        got = first.result(DEADLINE_S)
        want = recorded(version, name)
        want["body"]["usage"]["prompt_tokens_details"] = got.body["usage"]["prompt_tokens_details"]
        assert replay.differences(got, want) == []
        assert got.body["id"] == "job-1"
        assert 0 < got.body["usage"]["completion_tokens"] < 1500
        assert not other.done()
        sim.faults(freeze=None)
        assert other.result(DEADLINE_S).body["choices"][0]["finish_reason"] == "length"
        assert sim.stats()["aborted"] == 1


@pytest.mark.parametrize(
    ("version", "name", "again", "ends"),
    [
        ("0.5.11", "abort_queued_client", 400, False),
        ("0.5.23", "queue_full_3", 200, True),
    ],
)
def test_only_0_5_11_never_lets_go_of_a_rid_aborted_in_the_queue(
    version: str, name: str, again: int, ends: bool
) -> None:
    flags = {"reasoning_parser": "qwen3", "enable_cache_report": version == "0.5.23"}
    with Sim(version=version, max_running=1, latency=LONG, **flags) as sim:
        running = sim.ask_later(PROMPT, rid="running")
        waiting = sim.ask_later(PROMPT, rid="waiting")
        sim.send("POST", "/abort_request", {"rid": "waiting"})
        assert replay.differences(waiting.result(DEADLINE_S), recorded(version, name)) == []
        reused = sim.ask_later(PROMPT, rid="waiting")
        sim.send("POST", "/abort_request", {"rid": "running"})
        sim.send("POST", "/abort_request", {"rid": "waiting"})
        assert reused.result(DEADLINE_S).status == again
        running.result(DEADLINE_S)
        sim.terminate()
        if ends:
            assert sim.wait() == 0
        else:
            sim.until(lambda _: unhealthy(sim))
            assert sim.running


def test_a_rid_in_flight_can_not_be_used_again() -> None:
    with Sim(latency=LONG) as sim:
        sim.ask_later(PROMPT, rid="same")
        got = sim.ask(PROMPT, rid="same")
        assert replay.differences(got, recorded("0.5.11", "dup_rid_second_inflight")) == []
        sim.send("POST", "/abort_request", {"rid": "same"})


def test_the_cache_is_not_flushed_while_something_runs() -> None:
    with Sim(latency=LONG) as sim:
        sim.ask_later(PROMPT)
        got = sim.send("POST", "/flush_cache")
        assert replay.differences(got, recorded("0.5.11", "flush_cache_while_running")) == []
        sim.send("POST", "/abort_request", {"abort_all": True})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_answers_what_is_in_flight_and_what_still_comes(
    number: signal.Signals,
) -> None:
    with Sim(latency="fixed:0.3") as sim:
        sim.faults(freeze=True)
        flight = sim.ask_later(PROMPT)
        sim.signal(number)
        sim.until(lambda _: unhealthy(sim))
        late = sim.ask_later("Still open?")
        sim.faults(freeze=None)
        assert [f.result(DEADLINE_S).status for f in (flight, late)] == [200, 200]
        assert sim.wait() == 0


def test_it_never_ends_by_sigterm_where_that_is_wanted() -> None:
    with Sim(sigterm_never_exits=True) as sim:
        sim.terminate()
        sim.until(lambda _: unhealthy(sim))
        assert sim.ask(PROMPT).status == 200
        assert sim.running


def test_a_client_that_goes_away_is_aborted_and_its_slot_is_free() -> None:
    with Sim(latency=LONG, max_running=1, disconnect_s=0.05) as sim:
        connection = http.client.HTTPConnection(sim.host, sim.port)
        body = '{"model":"tiny","messages":[{"role":"user","content":"Hi"}]}'
        path = "/v1/chat/completions"
        connection.request("POST", path, body, {"content-type": "application/json"})
        sim.until(lambda seen: seen["running"] == 1)
        connection.close()
        sim.until(lambda seen: seen["running"] == 0)
        assert (sim.stats()["aborted"], sim.stats()["lost_clients"]) == (1, 1)


def test_while_starting_it_answers_but_is_not_healthy() -> None:
    with Sim(startup_s=0.5) as sim:
        assert sim.send("GET", "/health").status == 503
        assert sim.send("GET", "/v1/models").status == 200
        assert sim.ask(PROMPT).status == 200
        sim.until(lambda _: not unhealthy(sim))


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    with Sim(keep_alive_s=0.2, latency="fixed:0.6") as sim:
        flight = sim.ask_later(PROMPT)
        with socket.create_connection((sim.host, sim.port), timeout=DEADLINE_S) as idle:
            idle.sendall(b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200 OK" in idle.recv(1000)
            assert idle.recv(1000) == b""  # its end, not the time-out
        assert flight.result(DEADLINE_S).status == 200


@pytest.mark.parametrize(
    ("version", "body"),
    [("0.5.11", {"input_ids": [99999999]}), ("0.5.23", {"text": ""})],
)
def test_the_requests_that_kill_a_real_server_kill_it(version: str, body: dict[str, Any]) -> None:
    with Sim(version=version) as sim:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            sim.send("POST", "/generate", body)
        assert sim.wait() == 137


def test_a_killed_one_starts_again_on_its_port() -> None:
    with Sim() as sim:
        port = sim.port
        sim.kill()
        assert not sim.running
        assert sim.start().port == port
        assert sim.ask(PROMPT).status == 200


def test_a_stopped_one_answers_once_it_goes_on() -> None:
    with Sim() as sim, socket.create_connection((sim.host, sim.port)) as client:
        sim.stop()
        client.sendall(b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1000)
        sim.cont()
        client.settimeout(DEADLINE_S)
        assert b"200 OK" in client.recv(1000)
