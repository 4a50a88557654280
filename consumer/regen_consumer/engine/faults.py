"""What can go wrong with one request, and whom it is charged to.

The only place where text of an engine is matched is PATTERNS: SGLang's and llama.cpp's refusals
differ in nothing but their message. It is tested against every recorded refusal.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import orjson

from regen_common import errors

DETAIL_CHARS_MAX: Final = 300
_BODY_CHARS_READ: Final = 4_096
RETRY_AFTER_S_MAX: Final = 3_600.0


class Blame(Enum):
    """Whose fault it is, as far as the fault alone tells."""

    PROMPT = "prompt"  # asking again can't help
    ENGINE = "engine"  # it is not there: nobody is charged
    PASSING = "passing"  # it is busy: wait, nobody is charged
    UNSURE = "unsure"  # the prompt's if the engine is well right after, else the engine's
    SETUP = "setup"  # every request of this consumer fails like this


CLASSES: Final[dict[str, Blame]] = {
    "context_length": Blame.PROMPT,
    "bad_request": Blame.PROMPT,
    "bad_tools": Blame.PROMPT,
    "template": Blame.PROMPT,
    "engine_error": Blame.UNSURE,  # 500 and its kin
    "cut": Blame.UNSURE,  # the connection broke before the answer was whole
    "invalid_answer": Blame.UNSURE,  # not exactly an answer
    "aborted": Blame.UNSURE,  # the engine gave the request up
    "stalled": Blame.UNSURE,  # no answer in time, where there is a time
    "unreachable": Blame.ENGINE,  # no connection
    "busy": Blame.PASSING,  # queue full, rate limit
    "unauthorized": Blame.SETUP,
    "unknown_model": Blame.SETUP,
    "wrong_url": Blame.SETUP,
    "max_tokens": Blame.SETUP,  # the cap alone fills the context, whatever the prompt
}
"""Failure classes, and the blame of each."""


class Fault(errors.RegenError):
    """A request without an answer. Its text is one line of at most DETAIL_CHARS_MAX."""

    def __init__(
        self,
        klass: str,
        detail: str,
        *,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(one_line(detail))
        self.klass = klass
        self.blame = CLASSES[klass]
        self.retry_after_s = retry_after_s


class _Pattern(NamedTuple):
    text: re.Pattern[str]
    klass: str


def _pattern(text: str, klass: str) -> _Pattern:
    return _Pattern(re.compile(text), klass)


PATTERNS: Final = (
    _pattern(r"longer than the model's context length", "context_length"),
    _pattern(r"exceeds the model's maximum context length", "context_length"),
    _pattern(r"maximum context length is \d+ tokens", "context_length"),  # vLLM
    _pattern(r"exceeds the available context size", "context_length"),  # llama.cpp
    _pattern(r"^Tool \d+ function has invalid 'parameters' schema", "bad_tools"),
    _pattern(r"^Tool '.*' not found in tools list", "bad_tools"),
    _pattern(r"^Tools cannot be empty if tool choice", "bad_tools"),
    _pattern(r"tool call function\.arguments must be valid JSON", "bad_tools"),
    _pattern(r": line \d+ column \d+ \(char \d+\)$", "bad_tools"),  # the same, from 0.5.11
    _pattern(r"^Failed to compile structural_tag grammar", "bad_tools"),
    _pattern(r"'loc': \('body', 'tools'", "bad_tools"),
    _pattern(r"^System message must be at the beginning", "template"),
    _pattern(r"^No user query found in messages", "template"),
    _pattern(r"^Unexpected message role", "template"),
    _pattern(r"^No messages provided", "template"),
    _pattern(r"(?i)\bjinja|\btemplate(?:error|runtimeerror|syntaxerror)\b", "template"),
    _pattern(r"(?i)roles must alternate", "template"),
    _pattern(r"(?i)chat template", "template"),
    _pattern(r"^max_completion_tokens is too large", "max_tokens"),
    _pattern(r"^LoRA adapter '.*' was requested", "unknown_model"),
    _pattern(r"(?i)^the model .* (?:does not exist|was not found)", "unknown_model"),
    # a fresh id cures it: SGLang 0.5.11 forgets to free the ids of aborted requests
    _pattern(r"^Duplicate request ID detected", "aborted"),
    _pattern(r"TextEncodeInput must be Union", "bad_request"),  # a lone surrogate, as 500
)
"""Messages of refusals, the first that matches decides. Anything else goes by its status."""


def of_refusal(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """The fault that any response other than a 200 stands for."""
    message = message_of(body)
    detail = f"HTTP {status}: {message}" if message else f"HTTP {status} without a reason"
    klass = _by_message(status, message) or _by_status(status)
    if klass == "busy" and status == 503 and not _is_busy(headers, message):  # noqa: PLR2004
        klass = "engine_error"
    return Fault(klass, detail, retry_after_s=_retry_after_s(headers))


_TELLING: Final = (400, 404, 422, 500)
"""Statuses whose message says more than they do."""

_BY_STATUS: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "unauthorized",
    404: "wrong_url",
    405: "wrong_url",
    408: "stalled",
    413: "bad_request",
    422: "bad_request",
    429: "busy",
    503: "busy",
    504: "stalled",
}


def message_of(body: bytes) -> str:
    """The reason in an error body: JSON as OpenAI, FastAPI or SGLang have it, else its text."""
    try:
        found: Any = orjson.loads(body)
    except ValueError:
        return body[:_BODY_CHARS_READ].decode("utf-8", "replace").strip()
    for name in ("error", "message", "detail"):
        while isinstance(found, dict) and name in found:
            found = found[name]
    return found if isinstance(found, str) else orjson.dumps(found).decode()


def one_line(text: str) -> str:
    """At most DETAIL_CHARS_MAX characters, without line breaks, and always valid Unicode."""
    clean = text[:_BODY_CHARS_READ].encode("utf-8", "replace").decode()
    line = " ".join(clean.split())
    return line if len(line) <= DETAIL_CHARS_MAX else line[: DETAIL_CHARS_MAX - 3] + "..."


def _by_message(status: int, message: str) -> str | None:
    if status not in _TELLING:
        return None
    return next((p.klass for p in PATTERNS if p.text.search(message)), None)


def _by_status(status: int) -> str:
    redirect = status // 100 == 3  # noqa: PLR2004
    return _BY_STATUS.get(status, "wrong_url" if redirect else "engine_error")


def _is_busy(headers: Mapping[str, str], message: str) -> bool:
    """Does a 503 come from an engine that takes no more for now, or from one that is not there?"""
    return "retry-after" in headers or "queue is full" in message


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``Retry-After``; dates are not read."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(seconds, RETRY_AFTER_S_MAX) if seconds >= 0 else None
