"""What a request asks for, in the server's own terms, whichever endpoint it came by.

Made before the request is validated, because faults and counts need the prompt's digest.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from regen_sim import answers, options, prompts, sampling

_GENERATE_TOKENS: Final = 128  # the default of /generate; chat has none


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """``begun`` is the beginning of the answer, where the request brings one to go on from."""

    body: dict[str, Any]
    rid: str | None
    model: str
    prompt: bytes
    digest: str
    text: str  # where a fault's marker is looked for
    has_tools: bool
    tool: answers.Tool | None
    opening: prompts.Opening
    prompt_tokens: int
    prompt_ids: Sequence[int] | None
    begun: Sequence[int] | str
    tokens_max: int | None
    endless: bool


def of_chat(body: dict[str, Any], settings: options.Options) -> Order:
    """From ``/v1/chat/completions``; the body may still be wrong in every respect."""
    messages, begun = _prompt_and_beginning(body)
    tools = None if body.get("tool_choice") == "none" else body.get("tools")
    prompt = answers.canonical(messages, tools)
    opening = _opening(body, think_open=settings.think_open)
    tool = answers.tool_of(tools)
    order = Order(
        body=body,
        rid=body.get("rid") if settings.is_sglang else None,
        model=body.get("model") or "default",
        prompt=prompt,
        digest=answers.digest_of(prompt, settings.seed),
        text=_last_user_text(messages),
        has_tools=tool is not None,
        tool=tool,
        opening=opening,
        prompt_tokens=prompts.count(prompt, opening) + len(begun.encode()) // 4,
        prompt_ids=None,
        begun=begun,
        tokens_max=sampling.tokens_max(body),
        endless=bool(body.get("ignore_eos")),
    )
    ids = body.get("input_ids")
    return _from_ids(order, ids, settings) if ids and settings.is_new else order


def of_generate(body: dict[str, Any], settings: options.Options) -> Order:
    """From ``/generate``."""
    values = body.get("sampling_params") or {}
    text = str(body.get("text") or "")
    prompt = text.encode("utf-8", "replace")
    order = Order(
        body=body | values,
        rid=body.get("rid"),
        model=settings.model,
        prompt=prompt,
        digest=answers.digest_of(prompt, settings.seed),
        text=text,
        has_tools=False,
        tool=None,
        opening="plain",
        prompt_tokens=(len(prompt) + 3) // 4,
        prompt_ids=None,
        begun="",
        tokens_max=values.get("max_new_tokens", _GENERATE_TOKENS),
        endless=bool(values.get("ignore_eos")),
    )
    ids = body.get("input_ids")
    return _from_ids(order, ids, settings) if ids and not text else order


def _from_ids(order: Order, ids: list[int], settings: options.Options) -> Order:
    """The order with ids for its prompt: those of a chat answer go on with that answer."""
    known = prompts.recognise(ids)
    changes: dict[str, Any] = {"prompt_ids": ids, "prompt_tokens": len(ids)}
    if known is None:
        changes["digest"] = answers.digest_of(str(ids).encode(), settings.seed)
        changes["opening"] = "plain"
    else:
        changes |= {
            "digest": known.digest,
            "opening": known.opening,
            "has_tools": known.has_tools,
            "begun": known.so_far,
        }
    return dataclasses.replace(order, **changes)


def _prompt_and_beginning(body: dict[str, Any]) -> tuple[Any, str]:
    """The messages that are the prompt, and the beginning of an answer behind them."""
    messages = body.get("messages")
    if body.get("continue_final_message") and isinstance(messages, list) and messages:
        last = messages[-1]
        if isinstance(last, dict) and last.get("role") == "assistant":
            return messages[:-1], str(last.get("content") or "")
    return messages, ""


def _opening(body: dict[str, Any], *, think_open: bool) -> prompts.Opening:
    """Where the chat template lets the answer begin."""
    kwargs = body.get("chat_template_kwargs")
    off = isinstance(kwargs, dict) and kwargs.get("enable_thinking") is False
    if off or body.get("reasoning_effort") == "none":
        return "closed"
    return "open" if think_open else "plain"


def _last_user_text(messages: Any) -> str:
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list):
                return "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
            return str(content)
    return ""
