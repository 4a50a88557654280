"""The engine client against a real server: llama.cpp with a small model."""

import asyncio
import os
import sys
from pathlib import Path

import orjson
import pytest
import uvloop

from regen_consumer.engine import answer, preflight, request
from regen_consumer.engine.client import Engine, Health
from regen_consumer.engine.faults import Fault
from regen_consumer.engine.profile import EngineProfile, Wanted
from regen_consumer.engine.split import Opening
from servers.child import Child

DEADLINE_S = 120.0
WANTED = Wanted(max_tokens=64)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The demo's engine."""
    folder = tmp_path_factory.mktemp("llama")
    url_file: Path = folder / "url"
    command = [sys.executable, "-m", "regen_ops.run.demo_engine", str(url_file)]
    child = Child(command, log=folder / "log", env=os.environ)
    child.wait_until(url_file.exists)
    yield url_file.read_text()
    child.kill()


def run(scenario, url):
    async def inside():
        engine = Engine(url)
        async with asyncio.timeout(DEADLINE_S):
            try:
                await scenario(engine, await preflight.preflight(engine, WANTED))
            finally:
                await engine.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(inside())


async def ask(engine: Engine, profile: EngineProfile, text: str, *, max_tokens: int = 8):
    question = request.Question(
        model=profile.model,
        messages=orjson.dumps([{"role": "user", "content": text}]),
        tools=None,
        sampling=profile.sampling.values,
        max_tokens=max_tokens,
        seed=7,
    )
    rid = request.new_rid()
    response = await engine.complete(request.body(question, profile.dialect, rid=rid), rid=rid)
    return answer.read(response, model=profile.model, opening=profile.opening)


def test_it_is_recognised_and_proven_and_its_sampling_is_taken_over(url):
    async def scenario(engine, profile):
        assert await engine.health() is Health.WELL
        assert (engine.kind, profile.facts.server) == ("openai", "llama.cpp")
        assert (profile.thinks, profile.opening) == (False, Opening.MODEL)
        assert profile.sampling.sources["top_k"] == "server"
        assert profile.sampling.values["repetition_penalty"] == 1.0
        assert profile.identity["template_sha256"]

    run(scenario, url)


def test_it_answers_and_its_counters_tell(url):
    async def scenario(engine, profile):
        before = await engine.tokens()
        got = await ask(engine, profile, "Count to three.")
        assert got.completion.content
        assert got.completion.glue == ("", "", "")
        assert got.usage.completion_tokens <= 8
        assert await engine.tokens() >= before + got.usage.completion_tokens

    run(scenario, url)


def test_a_prompt_beyond_its_context_is_told_as_that(url):
    async def scenario(engine, profile):
        with pytest.raises(Fault) as caught:
            await ask(engine, profile, "word " * 9000)
        assert caught.value.klass == "context_length"

    run(scenario, url)


def test_a_cancelled_request_stops_at_once(url):
    async def scenario(engine, profile):
        task = asyncio.create_task(ask(engine, profile, "Tell a long story.", max_tokens=2000))
        while (await engine.progress()).running != 1:
            assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # it looks for clients that are gone once a second, if nobody asks it anything meanwhile
        while (await engine.progress()).running != 0:
            await asyncio.sleep(1.2)
        assert (await ask(engine, profile, "Hi")).completion.content

    run(scenario, url)
