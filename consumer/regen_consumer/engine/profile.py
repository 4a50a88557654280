"""What a run wants of an engine, what the engine is, and what follows from the two. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from regen_consumer.engine import request, sampling, split
from regen_consumer.engine.answer import Answer
from regen_consumer.engine.facts import Facts
from regen_consumer.engine.split import Opening


class Values(Protocol):
    """A run's configuration, as far as it is read here."""

    def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """How a run wants its prompts asked. ``thinking`` is on, off or auto; ``model`` None: any."""

    max_tokens: int
    model: str | None = None
    thinking: str = "auto"
    sampling: Mapping[str, float] = field(default_factory=dict)
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def thinking_flag(self) -> bool | None:
        """As requests have it; None leaves it to the chat template."""
        return {"on": True, "off": False}.get(self.thinking)


def wanted_of(config: Values, *, model: str | None = None) -> Wanted:
    """What a run's configuration asks for."""
    return Wanted(
        model=model,
        max_tokens=config["max_tokens"],
        thinking=config["thinking"],
        sampling=config["sampling"],
        template_kwargs=config["chat_template_kwargs"],
        extra_body=config["extra_body"],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineProfile:
    """What requests to this engine need, and what was found out about it.

    ``raw``: its text comes as the model said it, up to the token that ended it. ``thinks``: its
    answers hold thinking. ``warnings`` are for people, one line each.
    """

    facts: Facts
    model: str
    dialect: request.Dialect
    opening: Opening
    thinks: bool
    raw: bool
    token_ids: bool
    sampling: sampling.Resolved
    warnings: tuple[str, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """What a run is pinned to: ``name``, ``weight_version`` and two digests."""
        return self.facts.identity(self.model)


class Thinking(NamedTuple):
    """Whether answers hold thinking, and how they begin."""

    thinks: bool
    opening: Opening


def supposed(facts: Facts, wanted: Wanted, model: str) -> bool:
    """Does it think, as far as one can tell without asking?"""
    if wanted.thinking_flag is not None:
        return wanted.thinking_flag
    family = sampling.family_of((model, facts.model_path))
    return facts.reasoning_parser is not None or (family is not None and family.thinks_by_default)


def settings(
    facts: Facts, wanted: Wanted, model: str, *, thinks: bool, model_defaults: Mapping[str, float]
) -> sampling.Resolved:
    """The sampling of every request to this engine."""
    return sampling.resolve(
        sampling.family_of((model, facts.model_path)),
        thinking=thinks,
        overrides=wanted.sampling,
        server_defaults={**model_defaults, **facts.sampling_defaults},
        takes=facts.dialect.sampling,
    )


def shows_thinking(probed: Answer) -> bool:
    """Are there traces of thinking in it?"""
    completion = probed.completion
    return completion.reasoning is not None or split.CLOSE in (probed.raw_text or "")


def proves_enough(probed: Answer, facts: Facts) -> bool:
    """Whole, or with traces of thinking, or from a template that knows no thinking."""
    if probed.completion.finish_reason != "length" or shows_thinking(probed):
        return True
    template = facts.chat_template or ""  # SGLang shows a path, if anything
    return "{%" in template and split.OPEN not in template


def thinking_of(probed: Answer, *, supposed: bool, off: bool) -> Thinking:
    """Judged by an answer that was read with :attr:`Opening.MODEL`.

    One that was cut before it showed anything proves nothing: then what was supposed counts.
    """
    without = Opening.NONE if off else Opening.MODEL
    completion = probed.completion
    if probed.raw_text is None:  # the engine has parsed it
        return Thinking(completion.reasoning is not None, Opening.MODEL)
    if shows_thinking(probed):
        opened = completion.glue is not None and split.OPEN in completion.glue[0]
        return Thinking(True, Opening.MODEL if opened else Opening.INSIDE)
    if completion.finish_reason == "length" and supposed and not off:
        return Thinking(True, Opening.INSIDE)
    return Thinking(False, without)


def is_raw(probed: Answer, facts: Facts) -> bool:
    """Did the text come as the model said it? A whole one shows the token that ended it."""
    completion = probed.completion
    cut = completion.finish_reason == "length"
    ended = cut or (completion.glue is not None and completion.glue[2] != "")
    return facts.dialect.raw_text and probed.raw_text is not None and ended


def warnings(facts: Facts, wanted: Wanted, *, raw: bool, thinks: bool) -> tuple[str, ...]:
    """What a person should know before hours of GPU time are spent."""
    found = []
    if facts.tool_call_parser is not None:
        found.append(
            f"it parses tool calls (--tool-call-parser {facts.tool_call_parser}): what stands "
            "around a call is lost; start it without that flag"
        )
    if facts.kind == "sglang" and not raw:
        found.append("its text does not come as the model said it: glue can't be exact")
    if facts.has_metrics is False:
        found.append("it shows no token counters: start it with --enable-metrics to notice stalls")
    if wanted.thinking == "on" and not thinks:
        found.append("thinking is on, and its answer to a probe holds none")
    if wanted.thinking == "off" and thinks:
        found.append("thinking is off, and its answer to a probe holds some")
    return tuple(found)
