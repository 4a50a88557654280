"""Time in the simulation: slots, queue, progress of the counters, freezing, slowness."""

import argparse
import statistics

import pytest

from regen_sim import latency
from regen_sim.process import Sim

DEADLINE_S = 10.0
DECODED = 'mode="decode"'


def counter(sim: Sim, name: str, mode: str = "") -> float:
    text = str(sim.send("GET", "/metrics").body)
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith(f"sglang:{name}{{") and mode in line
    )


def test_no_more_run_than_may_and_the_rest_wait_in_order() -> None:
    with Sim(max_running=2, latency="fixed:0.05") as sim:
        sim.faults(freeze=True)
        flights = [sim.ask_later(str(number), rid=f"r{number}") for number in range(6)]
        seen = sim.stats()
        assert (seen["running"], seen["waiting"]) == (2, 4)
        assert counter(sim, "num_running_reqs") == 2
        assert counter(sim, "num_queue_reqs") == 4
        sim.faults(freeze=None)
        assert [flight.result(DEADLINE_S).status for flight in flights] == [200] * 6
        seen = sim.stats()
        assert (seen["running_max"], seen["waiting_max"]) == (2, 4)
        assert seen["completed"] == 6
        assert 0.3 <= seen["busy_slot_s"] < 10
        assert seen["queue_wait_s_max"] >= 0.1


def test_exactly_one_request_is_told_from_two_of_the_same_prompt() -> None:
    with Sim() as sim:
        for text in ("once", "twice", "twice"):
            sim.ask(text)
        seen = sim.stats()
        assert (seen["requests"], seen["prompts"]) == (3, 2)
        assert sorted(seen["digests"].values()) == [1, 2]
        assert [body["messages"][0]["content"] for body in sim.requests()] == [
            "once",
            "twice",
            "twice",
        ]


def test_counters_move_while_a_request_runs_as_far_as_real_ones_do() -> None:
    with Sim(latency="fixed:20") as sim:
        flight = sim.ask_later("long", ignore_eos=True, max_tokens=20000, rid="long")
        sim.until(lambda seen: seen["generated_tokens"] > 200)
        assert counter(sim, "realtime_tokens_total", DECODED) > 200
        assert counter(sim, "realtime_tokens_total", 'mode="prefill_compute"') > 10
        assert counter(sim, "num_used_tokens") > 200
        assert counter(sim, "generation_tokens_total") == 0
        sim.send("POST", "/abort_request", {"rid": "long"})
        tokens = flight.result(DEADLINE_S).body["usage"]["completion_tokens"]
        assert counter(sim, "generation_tokens_total") == tokens
        assert counter(sim, "num_aborted_requests_total") == 1


def test_frozen_nothing_moves_and_thawed_everything_ends() -> None:
    with Sim(latency="fixed:0.2") as sim:
        flight = sim.ask_later("cold", ignore_eos=True, max_tokens=1000)
        sim.until(lambda seen: seen["generated_tokens"] > 100)
        sim.faults(freeze=True)
        tokens = counter(sim, "realtime_tokens_total", DECODED)
        late = sim.ask_later("later")
        with pytest.raises(TimeoutError):
            flight.result(0.4)
        assert counter(sim, "realtime_tokens_total", DECODED) == tokens
        sim.faults(freeze=None)
        assert flight.result(DEADLINE_S).body["usage"]["completion_tokens"] == 1000
        assert late.result(DEADLINE_S).status == 200


def test_a_marked_prompt_may_take_eleven_minutes_and_the_others_go_on() -> None:
    with Sim() as sim:
        sim.faults(slow={"marker": "SLOW", "seconds": 660})
        slow = sim.ask_later("a SLOW one", ignore_eos=True, max_tokens=20000)
        quick = sim.ask("a quick one").body["usage"]["completion_tokens"]
        seen = sim.until(lambda seen: seen["generated_tokens"] > quick + 10)
        assert seen["running"] == 1
        assert not slow.done()


@pytest.mark.parametrize("text", ["x", "fixed", "fixed:a", "tok/s:0", "lognormal:1", "other:1"])
def test_a_latency_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        latency.parse(text)


def test_latencies_are_what_they_say() -> None:
    assert latency.parse("0").seconds("a", 100) == 0
    assert latency.parse("fixed:0.2").seconds("a", 100) == 0.2
    assert latency.parse("tok/s:50").seconds("a", 100) == 2
    spread = latency.parse("lognormal:3:0.8")
    found = [spread.seconds(str(number), 1) for number in range(5000)]
    assert statistics.mean(found) == pytest.approx(3, rel=0.1)
    assert spread.seconds("7", 1) == found[7]
    assert max(found) > 10
