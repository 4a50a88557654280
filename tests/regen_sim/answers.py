"""What the model answers: a pure function of messages, tools and the simulation's seed.

The content begins with ``answer <digest>``, the digest being the first 16 hex digits of the
sha256 over the canonical JSON of messages and tools, so that a test can tell whose answer it is.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from regen_sim import vocabulary as v

DIGEST_DIGITS: Final = 16
_MARKERS: Final = 4  # "\n", "</think>", "\n\n" and the end
_CALL_SHARE: Final = 2  # one in so many prompts with tools gets a call


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One answer. ``tokens`` counts what a think-open template makes of it, ``<|im_end|>`` too."""

    digest: str
    reasoning: str
    content: str
    tokens: int


class Draft(NamedTuple):
    """The same as ids, without the markers between thinking and answer."""

    digest: str
    reasoning: tuple[int, ...]
    content: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """The one function that calls are made to: its name and the parameters that get a value."""

    name: str
    parameters: tuple[tuple[str, str], ...]  # name, JSON type


def canonical(messages: Any, tools: Any) -> bytes:
    """The prompt as bytes: sorted keys, no white space; no tools at all are null."""
    prompt = {"messages": messages, "tools": tools or None}
    try:
        return orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, a NaN, an integer beyond 64 bits
        return json.dumps(prompt, sort_keys=True).encode()


def digest_of(prompt: bytes, seed: int = 0) -> str:
    """16 hex digits; without a seed the beginning of the prompt's plain sha256."""
    salt = b"" if seed == 0 else b"%d|" % seed
    return hashlib.sha256(salt + prompt).hexdigest()[:DIGEST_DIGITS]


def expected(messages: Any, tools: Any = None, *, seed: int = 0) -> Answer:
    """What a well-behaved simulation answers to this prompt."""
    made = draft(digest_of(canonical(messages, tools), seed), tool_of(tools))
    return Answer(
        digest=made.digest,
        reasoning=v.decode(made.reasoning),
        content=v.decode(made.content),
        tokens=len(made.reasoning) + len(made.content) + _MARKERS,
    )


def draft(digest: str, tool: Tool | None) -> Draft:
    """The answer to the prompt of this digest; with a tool, it may hold a call."""
    number = int(digest, 16)
    name = v.hex_ids(digest)
    thoughts = v.words(number >> 8, 12 + number % 180)
    words = v.words(number >> 24, 12 + (number >> 40) % 240)
    reasoning = (v.THOUGHT, v.SPACE, *name, v.COLON, *thoughts, v.DOT)
    content = (v.ANSWER, v.SPACE, *name, v.COLON, *words, v.DOT)
    if tool is not None and (number >> 4) % _CALL_SHARE == 0:
        content = (*content, v.BLANK_LINE, *call_ids(tool, digest))
    return Draft(digest, reasoning, content)


def call_ids(tool: Tool, digest: str) -> list[int]:
    """A tool call as Qwen3-Coder writes it."""
    number = int(digest[:4], 16)
    body = f"\n<function={tool.name}>\n"
    for place, (name, kind) in enumerate(tool.parameters):
        value = str(number + place) if kind in {"integer", "number"} else f"{name} {digest[:8]}"
        body += f"<parameter={name}>\n{value}\n</parameter>\n"
    return [v.TOOL_OPEN, *v.spell(f"{body}</function>\n"), v.TOOL_CLOSE]


def tool_of(tools: Any) -> Tool | None:
    """The first tool of a request, with up to three of its parameters; None without tools."""
    if not isinstance(tools, list) or not tools or not isinstance(tools[0], dict):
        return None
    function = tools[0].get("function", tools[0])
    schema = function.get("parameters") if isinstance(function, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    named = list(properties.items())[:3] if isinstance(properties, dict) else []
    parameters = tuple(
        (str(name), str(what.get("type")) if isinstance(what, dict) else "string")
        for name, what in named
    )
    return Tool(name=str(function.get("name", "tool")), parameters=parameters)
