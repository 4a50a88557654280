"""What an engine answered, out of its response. Pure.

Everything that is not exactly a good answer is a :class:`Fault`. An empty answer is an answer:
whether it is any good is for :mod:`regen_consumer.quality` to say.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from regen_consumer.engine import faults, split
from regen_consumer.engine.faults import Fault
from regen_consumer.record import Completion, Usage

HTTP_OK: Final = 200
FINISHED: Final = frozenset({"stop", "length", "tool_calls", "function_call"})
ABORTED: Final = frozenset({"abort", "aborted", "cancelled", "error"})


class Response(NamedTuple):
    """A response as it came. ``headers`` have lower-case names; ``latency_s``: until its end."""

    status: int
    headers: dict[str, str]
    body: bytes
    latency_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """``raw_text`` is what the split was made of, null where the engine gave parsed parts."""

    completion: Completion
    usage: Usage
    raw_text: str | None
    model: str | None
    weight_version: str | None


def read(response: Response, *, model: str, opening: split.Opening) -> Answer:
    """The answer to a request for ``model``, from an engine whose texts begin as ``opening`` says.

    Raises :class:`Fault`.
    """
    if response.status != HTTP_OK:
        raise faults.of_refusal(response.status, response.headers, response.body)
    found = _object(response)
    choice = _first_choice(found)
    finish = _finish_of(choice)
    _check_model(found, model)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _invalid("no message in it")
    completion, raw_text = _completion(found, choice, message, finish, opening)
    return Answer(
        completion=completion,
        usage=_usage(found.get("usage"), thought=bool(completion.reasoning)),
        raw_text=raw_text,
        model=_text(found.get("model")),
        weight_version=_text(_dict(found.get("metadata")).get("weight_version")),
    )


def _invalid(what: str) -> Fault:
    return Fault("invalid_answer", f"the answer is not valid: {what}")


def _object(response: Response) -> dict[str, Any]:
    kind = response.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise _invalid(f"content-type {kind or 'missing'}")
    try:
        found = orjson.loads(response.body)  # refuses invalid UTF-8 and lone surrogates, too
    except orjson.JSONDecodeError as error:
        raise _invalid(f"JSON: {error}") from error
    if not isinstance(found, dict):
        raise _invalid("no JSON object")
    if found.get("error"):
        raise Fault("engine_error", f"an error as 200: {faults.message_of(response.body)}")
    return found


def _first_choice(found: dict[str, Any]) -> dict[str, Any]:
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _invalid("no choices in it")
    return choices[0]


def _finish_of(choice: dict[str, Any]) -> str:
    finish = _text(choice.get("finish_reason"))
    if finish in ABORTED:
        raise Fault("aborted", f"the engine gave the request up (finish_reason {finish})")
    if finish is None or finish not in FINISHED:
        raise _invalid(f"finish_reason {choice.get('finish_reason')!r}")
    return finish


def _check_model(found: dict[str, Any], asked: str) -> None:
    """Services may add a date to the name that was asked for; another name is another model."""
    given = found.get("model")
    if given is not None and given != asked and not str(given).startswith(f"{asked}-"):
        raise _invalid(f"it is of model {given!r}, and {asked!r} was asked")


def _completion(
    found: dict[str, Any],
    choice: dict[str, Any],
    message: dict[str, Any],
    finish: str,
    opening: split.Opening,
) -> tuple[Completion, str | None]:
    content = _text_part(message, "content")
    reasoning = _text_part(message, "reasoning_content")
    if reasoning is None:
        reasoning = _text_part(message, "reasoning")  # vLLM's newer name
    calls = message.get("tool_calls") or None
    if calls is not None and not isinstance(calls, list):
        raise _invalid("tool_calls are no list")
    if content is None and reasoning is None and calls is None:
        raise _invalid("neither content nor reasoning nor tool calls in it")
    matched_stop = _matched_stop(choice)
    glue, raw_text = None, None
    if reasoning is None and content is not None:
        raw_text = content
        parts = split.split(
            content, opening=opening, stopped=finish == "stop", matched_stop=matched_stop
        )
        # where the engine took calls out of the text, the rest is not what it said
        reasoning, content, glue = (*parts[:2], None if calls else parts.glue)
    completion = Completion(
        reasoning=reasoning,
        content=content,
        glue=glue,
        tool_calls=calls,
        finish_reason=finish,
        matched_stop=matched_stop,
        prompt_ids=_ids(choice.get("prompt_token_ids", found.get("prompt_token_ids"))),
        output_ids=_ids(choice.get("response_token_ids", choice.get("token_ids"))),
    )
    return completion, raw_text


def _text_part(message: dict[str, Any], name: str) -> str | None:
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise _invalid(f"{name} is no text")
    return value


def _matched_stop(choice: dict[str, Any]) -> int | str | None:
    value = choice.get("matched_stop")
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _ids(value: Any) -> list[int] | None:
    """Token ids, where the engine gives them."""
    if not isinstance(value, list) or not all(type(token) is int for token in value):
        return None
    return value


def _usage(usage: Any, *, thought: bool) -> Usage:
    """Its own counts; null where there is none, or one that can't be true."""
    given = _dict(usage)
    details = _dict(given.get("completion_tokens_details"))
    reasoning = _count(given.get("reasoning_tokens", details.get("reasoning_tokens")))
    return Usage(
        prompt_tokens=_count(given.get("prompt_tokens")) or None,
        completion_tokens=_count(given.get("completion_tokens")) or None,
        cached_tokens=_count(_dict(given.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=None if thought and not reasoning else reasoning,  # 0 without a parser
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
