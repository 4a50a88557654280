"""What a fault does to a request: refuse it, spoil its body, or break the connection."""

import math
from typing import Any, Final

from regen_sim import faults, refusals, response, wire

_CONTENT: Final = b'"content":"'


def refusal(chosen: list[faults.Fault], model: str) -> response.Response | None:
    """The response of a fault that refuses, None for every other."""
    fault = faults.other_than_slow(chosen)
    return None if fault is None else _refusal(fault, model)


def _refusal(fault: faults.Fault, model: str) -> response.Response | None:
    args = fault.args
    match fault.name:
        case "context_length":
            return refusals.bad_request(refusals.too_long(262145, 262144))
        case "template":
            return refusals.bad_request(args.get("message", refusals.SYSTEM_FIRST), "BadRequest")
        case "bad_tools":
            return refusals.bad_request(refusals.BAD_SCHEMA.format(place=0, value="objectx"))
        case "bad_tool_args":
            message = "unexpected character, expected a string key: line 1 column 2 (char 1)"
            return refusals.bad_request(message, "BadRequest")
        case "bad_request":
            return refusals.bad_request(args.get("message", "top_p must be in (0, 1], got 2.0."))
        case "unauthorized":
            return refusals.unauthorized()
        case "forbidden":
            return refusals.forbidden()
        case "unknown_model":
            return refusals.unknown_model(model)
        case "rate_limit":
            wait = args.get("retry_after")
            return refusals.rate_limited(None if wait is None else str(wait))
        case "internal":
            return refusals.internal("CUDA error: an illegal memory access was encountered")
        case "queue_full":
            return refusals.queue_full()
        case "proxy_html":
            return refusals.proxy_html(int(fault.number("status", 502)))
        case _:
            return None


def duration_s(planned_s: float, chosen: list[faults.Fault]) -> float:
    """How long the generation takes with these faults."""
    for fault in chosen:
        if fault.name == "slow":
            planned_s = fault.number("seconds", 60)
        elif fault.name in {"cut_before", "die"}:
            planned_s = fault.number("after_s", planned_s)
        elif fault.name == "hang":
            planned_s = math.inf
    return planned_s


def spoil(body: dict[str, Any], fault: faults.Fault) -> dict[str, Any]:
    """The JSON body with something wrong in it, for faults of that kind."""
    match fault.name:
        case "null_content":
            for choice in body["choices"]:
                choice["message"]["content"] = None
        case "missing_choices":
            del body["choices"]
        case "empty_choices":
            body["choices"] = []
        case "usage_missing":
            del body["usage"]
        case "usage_null":
            body["usage"] = None
        case "usage_zero":
            body["usage"] = dict.fromkeys(("prompt_tokens", "total_tokens", "completion_tokens"), 0)
        case "short_for_tokens":
            factor = int(fault.number("factor", 20))
            body["usage"]["completion_tokens"] *= factor
        case "other_model":
            body["model"] = str(fault.args.get("model", "some-other-model"))
        case _:
            pass
    return body


def corrupt(data: bytes, fault: faults.Fault) -> bytes:
    """The body's bytes with something wrong in them, for faults of that kind."""
    match fault.name:
        case "invalid_json":
            return data[:-1] + b","
        case "invalid_utf8":
            return data.replace(_CONTENT, _CONTENT + b"\xff\xfe", 1)
        case "lone_surrogate":
            return data.replace(_CONTENT, _CONTENT + b"\\ud800", 1)
        case _:
            return data


def deliver(
    exchange: wire.Exchange, answer: response.Response, fault: faults.Fault, server: str
) -> None:
    """Send the answer, or as much of it as the fault lets through."""
    half = answer.body[: len(answer.body) // 2]
    match fault.name:
        case "cut_before":
            exchange.cut()
        case "cut_headers":
            head = response.head(answer, server=server)
            exchange.send_part(head[: len(head) // 2])
            exchange.cut()
        case "cut_body":
            exchange.send_part(response.head(answer, server=server) + half)
            exchange.cut()
        case "short_body":
            length = len(answer.body) + int(fault.number("bytes", 100))
            exchange.send_part(response.head(answer, server=server, length=length) + answer.body)
            exchange.cut()
        case _:
            exchange.send(answer)
