"""Tool definitions that stand in the text of a prompt.

A prompt whose text offers tools belongs to the category ``tools`` although it has no list to send.
Talking about tools is no offer: each detector asks for a definition (a name with its parameters,
a signature, a tool list in a known wrapping), and in a user's turn, where people paste code and
ask about it, also for words that offer it, or for a wrapping that only prompts have.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FLAGS: Final = re.IGNORECASE | re.MULTILINE


@dataclass(frozen=True, kw_only=True, slots=True)
class Detector:
    """One way to write definitions.

    ``needs``: one of these must be in the text, as written; a cheap test before the patterns.
    ``patterns``: all of them must be found.
    ``user``: whether a user's turn counts: ``never``, ``always``, ``offered`` (with OFFER in it).
    """

    name: str
    needs: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    user: str


def _patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, _FLAGS) for text in texts)


# Bounded where a run of one character could otherwise be tried from each of its places.
_Q = r"\\{0,8}[\"']"  # a quote of JSON or of Python, or of JSON inside a string
_EOL = r"[ \t\r]*\n(?:[ \t\r]*\n){0,2}[ \t]*"  # to the next line, over two blank ones at most
_KEY_NAME = rf"{_Q}name{_Q}\s*:\s*{_Q}[\w.\-/:]{{1,128}}{_Q}"
_KEY_PARAMETERS = rf"{_Q}(?:parameters|input_?schema){_Q}\s*:\s*\{{\s*"
_SCHEMA = (
    rf"{_KEY_PARAMETERS}(?:{_Q}(?:type|properties|required|title|\$schema){_Q}\s*:"
    rf"|{_Q}[\w.\-]+{_Q}\s*:\s*\{{|\}})"
)

_TOOLS = r"(?:functions?|tools?|apis?)\b"
_FEW = r"(?:[\w,'/-]+ ){0,5}?"  # words between

OFFER: Final = re.compile(
    rf"\baccess (?:to|of) {_FEW}{_TOOLS}"
    rf"|\b(?:use|using|call|invoke|choose from) {_FEW}(?:following|available) {_FEW}{_TOOLS}"
    rf"|\b{_TOOLS} {_FEW}(?:you (?:can|may|have)|available to you|at your disposal)"
    rf"|\byou (?:can|may|are \w+ to) (?:use|call|invoke) {_FEW}{_TOOLS}"
    r"|\b(?:respond|reply|answer)\b[^.\n]{0,40}\bfunction call"
    r"|\b(?:available|list of) (?:tools|functions)\s*:",
    _FLAGS,
)
"""Words that hand tools over, rather than ask about them."""

_REACT_OFFER = r"(?:tools?|functions?|apis?)\b[^.\n]{0,40}:[ \t\r]*$|should be one of|one of \["

DETECTORS: Final = (
    # Mistral
    Detector(
        name="available_tools",
        needs=("[AVAILABLE_TOOLS]",),
        patterns=_patterns(r"\[AVAILABLE_TOOLS\]\s*\[\s*\{"),
        user="always",
    ),
    # Hermes, Qwen (JSON or XML between the tags); "<tools></tools>" in prose has nothing in it
    Detector(
        name="tools_tag",
        needs=("<tools>", "<functions>", "<tool_list>", "<available_tools>"),
        patterns=_patterns(
            r"<(tools|functions|tool_list|available_tools)>\s*"
            r"(?:\[\s*)?(?:\{|<(?:function|tool|tool_description|functions)\b|-\s*name:)",
            rf"{_KEY_NAME}|<(?:tool_)?name>\s*\w|name:\s*\w|<(?:function|tool)\s+name=",
        ),
        user="always",
    ),
    # control tokens around a list: Kimi, LFM2, GLM, Granite
    Detector(
        name="tool_list_token",
        needs=("tool_list_start", "tool_declare", "available_tools|>", "|tools|>", "<|tool|>"),
        patterns=_patterns(
            r"<\|(?:tool_list_start|im_middle|available_tools|tools|tool)\|>\s*\[?\s*\{"
        ),
        user="always",
    ),
    # OpenAI, Glaive, Llama 3, ToolACE, xLAM, Anthropic, MCP: a JSON object with name and schema
    Detector(
        name="json_schema",
        needs=("parameters", "input_schema", "inputSchema"),
        patterns=_patterns(_KEY_NAME, _SCHEMA),
        user="offered",
    ),
    # OpenAI's own rendering, Functionary, Kimi
    Detector(
        name="typescript",
        needs=("namespace ",),
        patterns=_patterns(
            r"\bnamespace\s+\w+\s*\{", r"^[ \t]*type\s+\w+\s*=\s*\(\s*(?:_\s*:|\)\s*=>)"
        ),
        user="offered",
    ),
    # LangChain and its relatives
    Detector(
        name="react",
        needs=("Action Input",),
        patterns=_patterns(
            r"^[^\w\n]{0,20}Action\s*:", r"^[^\w\n]{0,20}Action Input\s*:", _REACT_OFFER
        ),
        user="offered",
    ),
    # Command R, Nexus, home-made
    Detector(
        name="python_signatures",
        needs=("def ",),
        patterns=_patterns(
            r"^[ \t]*(?:async\s+)?def\s+\w+\([^()]{0,2000}\)\s*(?:->[^:\n]+)?:", OFFER.pattern
        ),
        user="never",
    ),
    Detector(
        name="signature_list",
        needs=("(",),
        patterns=_patterns(
            rf"\b(?:functions|tools|apis)\b[^.\n]{{0,40}}:{_EOL}"
            r"(?:(?:[-*\u2022]|\d+[.)])\s*)?`?[a-z_][\w.]{2,}\([^()\n]*\)`?\s*"
            r"(?:->\s*[\w\[\], ]+)?\s*(?:[:\-\u2013\u2014]|$)"
        ),
        user="never",
    ),
    # Cline, Roo: headings, each with parameters
    Detector(
        name="markdown_docs",
        needs=("arameters:",),
        patterns=_patterns(
            r"^#+\s*(?:available\s+)?(?:tools|functions)\b",
            rf"^#+[ \t]*[`\w.\-]+{_EOL}(?:[^\n]*\n)?[ \t]*\**description\**\s*:"
            r"(?:[^\n]*\n){1,20}?[ \t]*\**parameters\**\s*:",
        ),
        user="offered",
    ),
    Detector(
        name="yaml",
        needs=("name:",),
        patterns=_patterns(
            rf"^[^\w\n]{{0,20}}(?:available\s+)?(?:tools|functions)[ \t]*:{_EOL}"
            rf"-[ \t]*name[ \t]*:[ \t]*\S+{_EOL}(?:description|parameters|args|arguments)\s*:"
        ),
        user="offered",
    ),
    # Llama 3's built-in tools: names without schemas, and the model knows them
    Detector(
        name="ipython",
        needs=("Environment: ipython",),
        patterns=_patterns(r"^Environment: ipython[ \t\r]*\n{1,3}Tools:\s*\w"),
        user="never",
    ),
)


def detect(messages: Sequence[dict[str, str]]) -> str | None:
    """The name of the detector that finds definitions in a system or user turn, or None."""
    whole = "\n".join(message["content"] for message in messages)
    for detector in DETECTORS:
        for word in detector.needs:
            if word in whole:
                break
        else:  # as for nearly every prompt and detector
            continue
        for message in messages:
            if _finds(detector, message["content"], is_user=message["role"] == "user"):
                return detector.name
    return None


def _finds(detector: Detector, text: str, *, is_user: bool) -> bool:
    if is_user and detector.user == "never":
        return False
    if not all(pattern.search(text) for pattern in detector.patterns):
        return False
    return not is_user or detector.user == "always" or OFFER.search(text) is not None
