"""The engine client against regen_sim: preflight, answers to the byte, faults, life and death."""

import asyncio
import contextlib

import orjson
import pytest
import uvloop

from regen_common import errors
from regen_consumer import quality
from regen_consumer.engine import answer, client, preflight, request, split
from regen_consumer.engine.client import Engine, Health
from regen_consumer.engine.faults import Blame, Fault
from regen_consumer.engine.profile import EngineProfile, Wanted
from regen_consumer.engine.split import Opening
from regen_sim import answers
from regen_sim.process import Sim

DEADLINE_S = 30.0
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
        },
    }
]
PROMPTS = [f"Tell me about number {number}. 🙂\u2028\n" for number in range(12)]

OLD = {"version": "0.5.11"}
NEW = {"version": "0.5.23"}
QWEN = {"reasoning_parser": "qwen3", "think_open": True}  # as the founding run had it


@contextlib.asynccontextmanager
async def engine_of(sim, **options):
    engine = Engine(sim.url, **options)
    async with asyncio.timeout(DEADLINE_S):
        try:
            yield engine
        finally:
            await engine.close()


def run(coroutine):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def question(profile: EngineProfile, text, **changes):
    return request.Question(
        **{
            "model": profile.model,
            "messages": orjson.dumps([{"role": "user", "content": text}]),
            "tools": None,
            "sampling": profile.sampling.values,
            "max_tokens": 4096,
            **changes,
        }
    )


async def ask(engine, profile, text, *, rid=None, **changes):
    rid = rid or request.new_rid()
    body = request.body(question(profile, text, **changes), profile.dialect, rid=rid)
    response = await engine.complete(body, rid=rid)
    return answer.read(response, model=profile.model, opening=profile.opening)


async def fault_of(asking):
    with pytest.raises(Fault) as caught:
        await asking
    return caught.value.klass, caught.value.blame


WANTED = Wanted(max_tokens=4096)
KINDS = [
    # flags, thinking -> thinks, opening, raw, token ids
    (OLD | QWEN, "auto", (True, Opening.INSIDE, True, False)),
    (OLD | {"think_open": True}, "auto", (True, Opening.INSIDE, True, False)),
    (OLD, "auto", (True, Opening.MODEL, True, False)),
    (OLD | QWEN, "off", (False, Opening.NONE, True, False)),
    (NEW | QWEN, "on", (True, Opening.INSIDE, True, True)),
    (NEW, "off", (False, Opening.NONE, True, True)),
]


@pytest.mark.parametrize(("flags", "thinking", "expected"), KINDS)
def test_preflight_finds_out_what_it_is_and_answers_are_exact_to_the_byte(
    flags, thinking, expected
):
    async def scenario():
        async with engine_of(sim) as engine:
            wanted = Wanted(max_tokens=4096, thinking=thinking)
            found = await preflight.preflight(engine, wanted)
            assert (found.thinks, found.opening, found.raw, found.token_ids) == expected
            assert (engine.kind, found.model, found.warnings) == ("sglang", "tiny", ())
            got = await asyncio.gather(
                *(ask(engine, found, text, thinking=wanted.thinking_flag) for text in PROMPTS)
            )
            for text, one in zip(PROMPTS, got, strict=True):
                check_exact(one, answers.expected([{"role": "user", "content": text}]), found)

    with Sim(**flags) as sim:
        run(scenario())


def check_exact(got, expected, profile):
    """Every part is what the simulation said, and together they are its raw text."""
    completion = got.completion
    assert completion.content == expected.content
    assert completion.reasoning == (expected.reasoning if profile.thinks else None)
    assert completion.glue[2] == "<|im_end|>"
    assert (completion.output_ids is not None) is profile.token_ids
    parts = split.Parts(completion.reasoning, completion.content, completion.glue)
    assert split.join(parts) == got.raw_text
    assert quality.labels(completion, got.usage, thinks=profile.thinks) == ()


def test_tool_calls_stay_in_the_text_of_an_engine_that_does_not_parse_them():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            got = await ask(engine, found, "weather?", tools=orjson.dumps(TOOLS))
            expected = answers.expected([{"role": "user", "content": "weather?"}], TOOLS)
            assert got.completion.content.startswith(f"answer {expected.digest}")
            assert "<function=look_up>" in got.completion.content
            assert got.completion.tool_calls is None

    with Sim(**OLD, **QWEN, fault=["tool_call"]) as sim:
        run(scenario())


def test_an_engine_that_parses_tool_calls_is_warned_of_and_its_calls_are_kept():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            assert "--tool-call-parser" in found.warnings[0]
            got = await ask(engine, found, "weather?", tools=orjson.dumps(TOOLS))
            assert got.completion.tool_calls[0]["function"]["name"] == "look_up"
            assert got.completion.glue is None

    with Sim(**OLD, **QWEN, tool_call_parser="qwen3_coder", fault=["tool_call"]) as sim:
        run(scenario())


def test_a_plain_openai_server_serves_as_well():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            assert (found.facts.kind, found.raw, found.token_ids) == ("openai", False, False)
            got = await ask(engine, found, PROMPTS[0])
            expected = answers.expected([{"role": "user", "content": PROMPTS[0]}])
            assert got.completion.content == expected.content

    with Sim(version="openai") as sim:
        run(scenario())


def test_nothing_is_sent_that_a_plain_openai_server_does_not_know():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            await ask(engine, found, "Hi")

    with Sim(version="openai") as sim:
        run(scenario())
        assert not {"rid", "no_stop_trim", "separate_reasoning"} & sim.requests()[-1].keys()


def refusal(wanted, **options):
    async def scenario():
        async with engine_of(sim, **options) as engine:
            with pytest.raises(errors.EngineRefusedError) as caught:
                await preflight.preflight(engine, wanted)
            return str(caught.value)

    with Sim(**OLD, **QWEN, api_key="k-right", context_length=2048) as sim:
        return run(scenario())


@pytest.mark.parametrize(
    ("wanted", "options", "cure"),
    [
        (Wanted(max_tokens=99), {"api_key": "k-wrong"}, "--api-key"),
        (Wanted(max_tokens=99), {}, "--api-key"),
        (Wanted(max_tokens=2048), {"api_key": "k-right"}, "max_tokens"),
        (Wanted(max_tokens=99, model="other"), {"api_key": "k-right"}, "serves tiny"),
        (Wanted(max_tokens=99, sampling={"top_p": 2.0}), {"api_key": "k-right"}, "regen-config"),
    ],
)
def test_an_engine_that_can_t_serve_the_run_is_refused_with_the_cure(wanted, options, cure):
    assert cure in refusal(wanted, **options)


def test_preflight_of_an_engine_that_is_not_there_is_no_refusal():
    async def scenario():
        async with engine_of(sim) as engine:
            sim.kill()
            assert await fault_of(preflight.preflight(engine, WANTED)) == (
                "unreachable",
                Blame.ENGINE,
            )

    with Sim(**OLD) as sim:
        run(scenario())


FAULTS = [
    # fault -> class
    ("null_content", "invalid_answer"),
    ("missing_choices", "invalid_answer"),
    ("empty_choices", "invalid_answer"),
    ("other_model", "invalid_answer"),
    ("lone_surrogate", "invalid_answer"),
    ("invalid_json", "invalid_answer"),
    ("invalid_utf8", "invalid_answer"),
    ("abort", "aborted"),
    ("context_length", "context_length"),
    ("template", "template"),
    ("bad_tools", "bad_tools"),
    ("bad_tool_args", "bad_tools"),
    ("bad_request", "bad_request"),
    ("unauthorized", "unauthorized"),
    ("forbidden", "unauthorized"),
    ("unknown_model", "unknown_model"),
    ("rate_limit", "busy"),
    ("queue_full", "busy"),
    ("internal", "engine_error"),
    ("proxy_html", "engine_error"),
    ("cut_before", "cut"),
    ("cut_headers", "cut"),
    ("cut_body", "cut"),
    ("short_body", "cut"),
]
LABELS = [
    ("trivial", ("trivial",)),
    ("empty", ("empty",)),
    ("thinking_only", ("thinking_only",)),
    ("truncated", ("truncated",)),
    ("usage_missing", ()),
    ("usage_null", ()),
    ("usage_zero", ()),
    ("huge", ()),
]


@pytest.fixture(scope="module")
def qwen():
    with Sim(**OLD, **QWEN) as sim:
        yield sim


@pytest.mark.parametrize(("name", "klass"), FAULTS)
def test_each_thing_that_goes_wrong_has_its_class_and_leaves_the_engine_usable(qwen, name, klass):
    async def scenario():
        async with engine_of(qwen) as engine:
            found = await preflight.preflight(engine, WANTED)
            qwen.faults(**{name: {"marker": "@@"}})
            got, _ = await fault_of(ask(engine, found, "@@"))
            assert got == klass
            assert (await ask(engine, found, "fine")).completion.finish_reason == "stop"

    try:
        run(scenario())
    finally:
        qwen.heal()


@pytest.mark.parametrize(("name", "expected"), LABELS)
def test_a_poor_answer_is_an_answer_with_its_label(qwen, name, expected):
    async def scenario():
        async with engine_of(qwen) as engine:
            found = await preflight.preflight(engine, WANTED)
            qwen.faults(**{name: {"marker": "@@"}})
            got = await ask(engine, found, "@@ please")
            labels = quality.labels(got.completion, got.usage, thinks=found.thinks)
            assert set(labels) - {"truncated_thinking"} == set(expected)

    try:
        run(scenario())
    finally:
        qwen.heal()


def test_a_cap_that_cuts_the_thinking_is_seen_as_that(qwen):
    async def scenario():
        async with engine_of(qwen) as engine:
            found = await preflight.preflight(engine, WANTED)
            got = await ask(engine, found, "Hi", max_tokens=5)
            assert got.completion.content is None
            labels = quality.labels(got.completion, got.usage, thinks=found.thinks)
            assert labels == ("truncated", "truncated_thinking")

    run(scenario())


def test_cancelling_aborts_the_request_on_the_engine():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            sim.faults(hang={"marker": "@@"})
            task = asyncio.create_task(ask(engine, found, "@@"))
            await asyncio.to_thread(sim.until, lambda seen: seen["running"] == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(sim.until, lambda seen: seen["lost_clients"] == 1)
            await asyncio.to_thread(sim.until, lambda seen: seen["running"] == 0)
            assert (await ask(engine, found, "next")).completion.content

    with Sim(**OLD, **QWEN, disconnect_s=0.05) as sim:
        run(scenario())


def test_aborting_ends_just_the_request_of_that_id():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            sim.faults(slow={"seconds": 60, "marker": "@@"})
            rids = [request.new_rid(), request.new_rid()]
            tasks = [asyncio.create_task(ask(engine, found, "@@", rid=rid)) for rid in rids]
            await asyncio.to_thread(sim.until, lambda seen: seen["running"] == 2)
            await engine.abort(rids[0])
            assert await fault_of(tasks[0]) == ("aborted", Blame.UNSURE)
            assert not tasks[1].done()
            tasks[1].cancel()
            await asyncio.gather(tasks[1], return_exceptions=True)

    with Sim(**OLD, **QWEN) as sim:
        run(scenario())


def test_token_counters_move_while_an_answer_is_being_written_and_stand_when_it_is_stuck():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            sim.faults(slow={"seconds": 600, "marker": "@@"})
            before = await engine.tokens()
            task = asyncio.create_task(ask(engine, found, "@@"))
            await asyncio.to_thread(sim.until, lambda seen: seen["running"] == 1)
            while await engine.tokens() == before:
                assert not task.done()
            sim.faults(freeze=True)
            frozen = await engine.tokens()
            assert await engine.tokens() == frozen > before
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    with Sim(**OLD, **QWEN, latency="fixed:0.01") as sim:
        run(scenario())


def test_without_metrics_queues_are_known_and_counters_are_not(qwen):
    async def scenario():
        async with engine_of(qwen) as engine:
            await engine.facts()
            qwen.faults(no_metrics=True)
            found = await engine.progress()
            assert (found.running, found.tokens) == (0, None)

    try:
        run(scenario())
    finally:
        qwen.heal()


def test_health_follows_the_life_of_an_engine(monkeypatch):
    async def scenario():
        async with engine_of(sim) as engine:
            assert await engine.health() is Health.REFUSING  # loading
            while await engine.health() is not Health.WELL:
                pass
            monkeypatch.setattr(client, "HEALTH_S_MAX", 0.1)
            sim.stop()
            assert await engine.health() is Health.UNSURE
            sim.cont()
            monkeypatch.undo()
            assert await engine.health() is Health.WELL
            flight = sim.ask_later("keep it alive")
            sim.terminate()
            while await engine.health() is Health.WELL:
                pass
            assert await engine.health() is Health.REFUSING
            sim.kill()
            assert await engine.health() is Health.DOWN
            assert flight.exception(DEADLINE_S)

    with Sim(**OLD, startup_s=0.5, latency="fixed:60") as sim:
        run(scenario())


def test_an_engine_that_dies_of_a_request_cuts_it_and_is_down():
    async def scenario():
        async with engine_of(sim) as engine:
            found = await preflight.preflight(engine, WANTED)
            sim.faults(die={"marker": "@@"})
            assert await fault_of(ask(engine, found, "@@")) == ("cut", Blame.UNSURE)
            assert await engine.health() is Health.DOWN

    with Sim(**OLD, **QWEN) as sim:
        run(scenario())
