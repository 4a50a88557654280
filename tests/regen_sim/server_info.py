"""The long lists of facts that a server tells about itself: recorded ones, with our values set."""

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import orjson

from regen_sim import options

_RESERVED: Final = 6  # tokens of the context that a request may not fill


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What is going on right now."""

    running: int
    waiting: int
    used_tokens: int
    tokens_per_s: float
    tokens_max: int


def server_info(
    settings: options.Options, *, tokens_per_s: float, tokens_max: int
) -> dict[str, Any]:
    """``/server_info``: all server arguments, and the state of the one scheduler."""
    facts = _facts(settings.version)
    arguments: dict[str, Any] = facts["server_info"] | {
        "context_length": settings.context_length,
        "host": settings.host,
        "port": settings.port,
        "served_model_name": settings.model,
        "api_key": settings.api_key,
        "reasoning_parser": settings.reasoning_parser,
        "tool_call_parser": settings.tool_call_parser,
        "enable_metrics": settings.metrics,
        "enable_cache_report": settings.cache_report,
        "max_running_requests": settings.max_running,
        "max_queued_requests": settings.max_queued,
        "random_seed": settings.seed,
        "max_total_tokens": tokens_max,
        "max_total_num_tokens": tokens_max,
        "max_req_input_len": settings.context_length - _RESERVED,
    }
    if settings.spec is not None:
        arguments |= {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3}
    state: dict[str, Any] = (
        arguments | facts["internal_state"] | {"last_gen_throughput": tokens_per_s}
    )
    if settings.spec is not None:
        state["avg_spec_accept_length"] = settings.spec
    return arguments | {"internal_states": [state], "version": settings.version}


def model_info(settings: options.Options) -> dict[str, Any]:
    """``/model_info``."""
    facts: dict[str, Any] = _facts(settings.version)["model_info"]
    named = {
        "served_model_name": settings.model,
        "reasoning_parser": settings.reasoning_parser,
        "tool_call_parser": settings.tool_call_parser,
    }
    return facts | {name: value for name, value in named.items() if name in facts}


def loads(settings: options.Options, load: Load, now: str) -> dict[str, Any]:
    """``/v1/loads``, of one rank."""
    facts: dict[str, Any] = _facts(settings.version)["loads"]
    usage = load.used_tokens / load.tokens_max
    rank = facts["loads"][0] | {
        "num_running_reqs": load.running,
        "num_waiting_reqs": load.waiting,
        "num_used_tokens": load.used_tokens,
        "num_total_tokens": load.used_tokens,
        "max_total_num_tokens": load.tokens_max,
        "token_usage": usage,
        "gen_throughput": load.tokens_per_s,
        "max_running_requests": settings.max_running,
    }
    if settings.is_new:
        return facts | {"timestamp": now, "loads": [rank]}
    rank["num_total_reqs"] = load.running + load.waiting
    aggregate = facts["aggregate"] | {
        "total_running_reqs": load.running,
        "total_waiting_reqs": load.waiting,
        "total_reqs": load.running + load.waiting,
        "total_used_tokens": load.used_tokens,
        "total_tokens": load.used_tokens,
        "avg_token_usage": usage,
        "avg_throughput": load.tokens_per_s,
    }
    return facts | {"timestamp": now, "loads": [rank], "aggregate": aggregate}


def llama_models(settings: options.Options, created: int) -> dict[str, Any]:
    """``/v1/models`` as llama.cpp's server shows it: no ``max_model_len``, but ``meta.n_ctx``."""
    name = settings.model
    return {
        "models": [{"name": name, "model": name, "type": "model", "capabilities": ["completion"]}],
        "object": "list",
        "data": [
            {
                "id": name,
                "aliases": [name],
                "tags": [],
                "object": "model",
                "created": created,
                "owned_by": "llamacpp",
                "meta": {"n_ctx": settings.context_length, "n_ctx_train": settings.context_length},
            }
        ],
    }


@functools.cache
def _facts(version: str) -> dict[str, Any]:
    file = resources.files("regen_sim").joinpath("facts", f"{version}.json")
    found: dict[str, Any] = orjson.loads(file.read_bytes())
    return found
