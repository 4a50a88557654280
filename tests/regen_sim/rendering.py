"""A chat answer as the JSON body of each version, keys in the recorded order."""

import time
import uuid
from collections.abc import Sequence
from typing import Any

from regen_sim import meta, options, orders, output, parsing, prompts, work


def chat(item: work.Work, made: output.Output, settings: options.Options) -> dict[str, Any]:
    """The body of a 200."""
    if not settings.is_sglang:
        return _openai(item, made, settings)
    count = item.body.get("n") or 1
    choices = [_choice(item, made, settings, place) for place in range(count)]
    body = {
        "id": item.rid,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": item.order.model,
        "choices": choices,
        "usage": _usage(item, made, settings, count),
        "metadata": _metadata(made, settings),
    }
    extension = _extension(item, made, settings)
    return body | {"sglext": extension} if extension else body


def _choice(
    item: work.Work, made: output.Output, settings: options.Options, place: int
) -> dict[str, Any]:
    message, finish = _message(item, made, settings)
    choice: dict[str, Any] = {
        "index": place,
        "message": message,
        "logprobs": None,
        "finish_reason": finish,
        "matched_stop": made.matched_stop if finish == made.finish else None,
    }
    if settings.is_new:
        choice |= _ids(item, made, settings)
    return choice


def _message(
    item: work.Work, made: output.Output, settings: options.Options
) -> tuple[dict[str, Any], str]:
    text, new = output.text_of(made, item.body), settings.is_new
    reasoning: str | None = None
    if _separates(item, settings):
        forced = item.order.opening == "open"
        reasoning, text = parsing.split_reasoning(text, forced=forced, new=new)
    calls = None
    if settings.tool_call_parser and item.order.has_tools and "<tool_call>" in text:
        text, found = parsing.split_calls(text, item.body.get("tools"), new=new)
        calls = [_call(call, place) for place, call in enumerate(found)] or None
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text or ("" if new else None),
        "reasoning_content": reasoning or None,
    }
    if not new or calls:
        message["tool_calls"] = calls
    return message, "tool_calls" if calls and made.finish == "stop" else made.finish


def _separates(item: work.Work, settings: options.Options) -> bool:
    """Does the server's reasoning parser touch this answer?"""
    wanted = item.body.get("separate_reasoning", True)
    return bool(settings.reasoning_parser and wanted and item.order.opening != "closed")


def _call(call: parsing.Call, place: int) -> dict[str, Any]:
    return {
        "id": f"call_{uuid.uuid4().hex[:24]}",
        "index": place,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _usage(
    item: work.Work, made: output.Output, settings: options.Options, count: int
) -> dict[str, Any]:
    thought = output.reasoning_tokens(item, made, settings) * count
    if count > 1 and not settings.is_new:
        thought = 0
    tokens = len(made.ids) * count
    cached = item.cached_tokens if made.prompt_tokens else 0
    shown = settings.cache_report and (cached or settings.is_new)
    usage = {
        "prompt_tokens": made.prompt_tokens,
        "total_tokens": made.prompt_tokens + tokens,
        "completion_tokens": tokens,
        "prompt_tokens_details": {"cached_tokens": cached} if shown else None,
        "reasoning_tokens": thought,
    }
    if settings.is_new:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought} if thought else None
    return usage


def _metadata(made: output.Output, settings: options.Options) -> dict[str, Any]:
    if not settings.is_new:
        return {"weight_version": "default"}
    return {"weight_version": "default", "weight_versions": output.weight_versions(made)}


def _ids(item: work.Work, made: output.Output, settings: options.Options) -> dict[str, Any]:
    """The ids and the meta_info that 0.5.23 adds to a choice for who asks."""
    found: dict[str, Any] = {}
    if item.body.get("return_token_ids") or item.body.get("return_prompt_token_ids"):
        found["prompt_token_ids"] = _prompt_ids(item.order)
    if item.body.get("return_token_ids"):
        found["response_token_ids"] = made.ids
    if item.body.get("return_meta_info"):
        found["meta_info"] = meta.meta_info(item, made, settings)
    return found


def _prompt_ids(order: orders.Order) -> Sequence[int]:
    if order.prompt_ids is not None:
        return order.prompt_ids
    return prompts.ids_of(order.prompt, order.digest, order.opening, has_tools=order.has_tools)


def _extension(item: work.Work, made: output.Output, settings: options.Options) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if settings.is_new and item.body.get("return_input_ids_in_sglext"):
        found["input_ids"] = _prompt_ids(item.order)
    if settings.is_new and item.body.get("return_output_ids_in_sglext"):
        found["output_ids"] = [made.ids]
    if item.body.get("return_cached_tokens_details"):
        found["cached_tokens_details"] = {"device": item.cached_tokens, "host": 0}
    return found


def _openai(item: work.Work, made: output.Output, settings: options.Options) -> dict[str, Any]:
    """llama.cpp's body: reasoning only where a parser finds some, the model's own name."""
    text = output.text_of(made, {})
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if _separates(item, settings):
        split = parsing.split_reasoning(text, forced=item.order.opening == "open", new=False)
        message = {"role": "assistant", "content": split.content}
        if split.reasoning:
            message["reasoning_content"] = split.reasoning
    tokens = len(made.ids)
    finish = "stop" if made.finish == "abort" else made.finish
    return {
        "choices": [{"finish_reason": finish, "index": 0, "message": message}],
        "created": int(time.time()),
        "model": settings.model,
        "system_fingerprint": "b0-unknown",
        "object": "chat.completion",
        "usage": {
            "completion_tokens": tokens,
            "prompt_tokens": made.prompt_tokens,
            "total_tokens": made.prompt_tokens + tokens,
            "prompt_tokens_details": {"cached_tokens": item.cached_tokens},
        },
        "id": f"chatcmpl-{item.rid}",
    }
