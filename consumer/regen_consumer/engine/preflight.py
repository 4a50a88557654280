"""Before an engine gets prompts: what is it, does it think, does its text come as it was said?

What an engine says of itself is not taken on trust where one small request can prove it.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import orjson

from regen_common import errors
from regen_consumer.engine import answer, profile, request, sampling
from regen_consumer.engine.client import Engine
from regen_consumer.engine.facts import Facts
from regen_consumer.engine.faults import Blame, Fault
from regen_consumer.engine.profile import EngineProfile, Wanted
from regen_consumer.engine.split import Opening

PROBE: Final = orjson.dumps([{"role": "user", "content": "Say hi."}])
PROBE_TOKENS: Final = (64, 1024)
"""Caps of the probe; the second where the first cut the answer before it showed anything."""

PROBE_S_MAX: Final = 300.0
"""A busy engine may let it wait for long."""

CURES: Final[Mapping[str, str]] = {
    "unauthorized": "give its key with --api-key",
    "wrong_url": "see that --engine and --engine-kind are right",
    "bad_request": "change sampling or extra_body with regen-config set",
    "max_tokens": "lower it with regen-config set max_tokens=N",
}


async def preflight(engine: Engine, wanted: Wanted) -> EngineProfile:
    """Ask the engine what it is, and prove it with a small request.

    Raises :class:`regen_common.errors.EngineRefusedError` where it can't serve the run as
    configured, and :class:`Fault` where it can't now.
    """
    request.check_extra_body(wanted.extra_body)
    try:
        return await _look(engine, wanted)
    except Fault as fault:
        if fault.blame not in (Blame.SETUP, Blame.PROMPT):  # the prompt was ours
            raise
        cure = CURES.get(fault.klass, "see the engine's log")
        raise errors.EngineRefusedError(f"{engine.url}: {fault.klass}: {fault}; {cure}") from fault


async def _look(engine: Engine, wanted: Wanted) -> EngineProfile:
    facts = await engine.facts()
    model = _model_of(engine, facts, wanted)
    _check_context(engine, facts, wanted)
    defaults = await _defaults_of_model(facts)
    supposed = profile.supposed(facts, wanted, model)
    settings = profile.settings(facts, wanted, model, thinks=supposed, model_defaults=defaults)
    probed = await _probe(engine, facts, wanted, model, settings)
    thinks, opening = profile.thinking_of(probed, supposed=supposed, off=wanted.thinking == "off")
    raw = profile.is_raw(probed, facts)
    return EngineProfile(
        facts=facts,
        model=model,
        dialect=facts.dialect,
        opening=opening,
        thinks=thinks,
        raw=raw,
        token_ids=probed.completion.output_ids is not None,
        sampling=profile.settings(facts, wanted, model, thinks=thinks, model_defaults=defaults),
        warnings=profile.warnings(facts, wanted, raw=raw, thinks=thinks),
    )


def _model_of(engine: Engine, facts: Facts, wanted: Wanted) -> str:
    if wanted.model is None:
        return facts.models[0]
    if wanted.model not in facts.models:
        raise errors.EngineRefusedError(
            f"{engine.url} serves {', '.join(facts.models)}, not {wanted.model!r}; start that "
            "model there, or name one that it serves"
        )
    return wanted.model


def _check_context(engine: Engine, facts: Facts, wanted: Wanted) -> None:
    """SGLang refuses every prompt when the cap alone fills the context."""
    length = facts.context_length
    if facts.kind == "sglang" and length is not None and wanted.max_tokens >= length:
        raise errors.EngineRefusedError(
            f"{engine.url} has a context of {length} tokens, and max_tokens is "
            f"{wanted.max_tokens}; lower it with regen-config set max_tokens=N, or start the "
            "engine with a longer --context-length"
        )


async def _defaults_of_model(facts: Facts) -> dict[str, float]:
    """The model's own sampling, where its folder is on this machine: SGLang does not show it."""
    if facts.kind != "sglang" or facts.model_path is None:
        return {}
    path = Path(facts.model_path) / "generation_config.json"
    try:
        return sampling.known(orjson.loads(await asyncio.to_thread(path.read_bytes)))
    except (OSError, ValueError):
        return {}  # the model is elsewhere, or has no such file


async def _probe(
    engine: Engine, facts: Facts, wanted: Wanted, model: str, settings: sampling.Resolved
) -> answer.Answer:
    """The answer to a small prompt; it is cut only if it goes on for long without thinking."""
    first, second = (min(cap, wanted.max_tokens) for cap in PROBE_TOKENS)
    probed = await _ask(engine, facts, wanted, model, settings, cap=first)
    if first == second or profile.proves_enough(probed, facts):
        return probed
    return await _ask(engine, facts, wanted, model, settings, cap=second)


async def _ask(
    engine: Engine,
    facts: Facts,
    wanted: Wanted,
    model: str,
    settings: sampling.Resolved,
    *,
    cap: int,
) -> answer.Answer:
    question = request.Question(
        model=model,
        messages=PROBE,
        tools=None,
        sampling=settings.values,
        max_tokens=cap,
        thinking=wanted.thinking_flag,
        template_kwargs=wanted.template_kwargs,
        extra_body=wanted.extra_body,
    )
    rid = request.new_rid()
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            response = await engine.complete(
                request.body(question, facts.dialect, rid=rid), rid=rid
            )
    except TimeoutError as error:
        raise Fault("stalled", f"no answer to a probe within {PROBE_S_MAX:.0f} s") from error
    return answer.read(response, model=model, opening=Opening.MODEL)
