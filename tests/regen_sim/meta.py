"""``meta_info``: in ``/generate``, and in 0.5.23's chat choices for who asks."""

import time
from typing import Any

from regen_sim import options, output, work
from regen_sim import vocabulary as v


def meta_info(item: work.Work, made: output.Output, settings: options.Options) -> dict[str, Any]:
    """As in ``/generate``, and in the choices of a 0.5.23 chat with ``return_meta_info``."""
    now_s = time.time()
    tokens = len(made.ids)
    latency_s = now_s - item.arrived_s
    common = {
        "id": item.rid,
        "finish_reason": _finish_reason(made),
        "prompt_tokens": made.prompt_tokens,
        "weight_version": "default",
    }
    counts = {
        "reasoning_tokens": output.reasoning_tokens(item, made, settings),
        "completion_tokens": tokens,
        "cached_tokens": item.cached_tokens,
    }
    cached = {"device": item.cached_tokens, "host": 0} if item.cached_tokens else None
    times = {
        "cached_tokens_details": cached,
        "dp_rank": None,
        "e2e_latency": latency_s,
        "request_received_ts": item.arrived_s,
    }
    spec = _speculation(tokens, settings)
    if not settings.is_new:
        waits = {
            "total_retractions": 0,
            "queue_time": 0.0,
            "prefill_waiting_latency": None,
            "prefill_launch_latency": None,
        }
        return common | waits | counts | spec | times | _old_end(now_s, latency_s, tokens)
    waits = {
        "num_retractions": 0,
        "storage_prefetch_wait": 0.0,
        "storage_staging_wait": 0.0,
        "forward_entry_time": item.arrived_s,
        "prefill_finished_time": item.arrived_s,
        "queue_time": 0.0,
    }
    versions = {"weight_versions": output.weight_versions(made)}
    return common | waits | counts | spec | versions | times | _new_end(now_s, latency_s, tokens)


def _old_end(now_s: float, latency_s: float, tokens: int) -> dict[str, Any]:
    return {
        "api_server_dispatch_finish_ts": now_s - latency_s,
        "request_finished_ts": now_s,
        "inference_time": latency_s,
        "decode_throughput": tokens / latency_s if latency_s > 0 else 0.0,
        "response_sent_to_client_ts": now_s,
    }


def _new_end(now_s: float, latency_s: float, tokens: int) -> dict[str, Any]:
    end = _old_end(now_s, latency_s, tokens)
    del end["inference_time"]
    return {"first_token_latency": latency_s} | end


def _speculation(tokens: int, settings: options.Options) -> dict[str, Any]:
    if settings.spec is None:
        return {}
    steps = max(1, round(tokens / settings.spec))
    return {
        "spec_accept_rate": min(1.0, (settings.spec - 1) / 3),
        "spec_accept_length": settings.spec,
        "spec_verify_ct": steps,
        "spec_accepted_drafts": max(0, tokens - steps),
    }


def _finish_reason(made: output.Output) -> dict[str, Any]:
    match made.finish:
        case "stop":
            return {"type": "stop", "matched": v.IM_END}
        case "length":
            return {"type": "length", "length": len(made.ids)}
        case _:
            return {"type": "abort", "message": "Abort in the server", "status_code": None}
