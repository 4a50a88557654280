"""How far an engine has come: token counters and queue lengths out of its metrics. Pure.

Counters tell progress; gauges go stale (after an abort SGLang's ``num_running_reqs`` stayed for
over ten seconds). SGLang's ``realtime_tokens_total`` moves while an answer is being written,
``generation_tokens_total`` only at its end.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

_SAMPLE: Final = re.compile(
    r"^(?:sglang|vllm|llamacpp):(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>[0-9.eE+-]+)\s*$",
    re.MULTILINE,
)
_DECODED: Final = 'mode="decode"'

_GENERATED: Final = ("generation_tokens_total", "tokens_predicted_total")
_READ: Final = ("prompt_tokens_total",)
_RUNNING: Final = ("num_running_reqs", "num_requests_running", "requests_processing")
_WAITING: Final = ("num_queue_reqs", "num_requests_waiting", "requests_deferred")
_KV_USAGE: Final = ("token_usage", "kv_cache_usage_perc")
_RATE: Final = ("gen_throughput",)
_ACCEPTED: Final = ("spec_accept_length",)
_REALTIME: Final = "realtime_tokens_total"
_KNOWN: Final = frozenset(
    (*_GENERATED, *_READ, *_RUNNING, *_WAITING, *_KV_USAGE, *_RATE, *_ACCEPTED, _REALTIME)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Sums over all ranks; null where the engine does not show it.

    Tokens are since the engine's start. ``kv_usage`` is the fullest rank's share; ``accept_length``
    tokens per step of speculative decoding.
    """

    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    tokens_per_s: float | None = None
    accept_length: float | None = None

    @property
    def tokens(self) -> int | None:
        """Grows as long as the engine does anything."""
        if self.prompt_tokens is None and self.generation_tokens is None:
            return None
        return (self.prompt_tokens or 0) + (self.generation_tokens or 0)


def of_metrics(text: str) -> Progress | None:
    """Progress from a ``/metrics`` page; None where it shows nothing of this."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    decoded: list[float] = []
    prefilled: list[float] = []
    for sample in _SAMPLE.finditer(text):
        name, value = sample["name"], float(sample["value"])
        if name == _REALTIME:
            (decoded if _DECODED in (sample["labels"] or "") else prefilled).append(value)
        elif name in _KNOWN:
            values[name].append(value)
    generated = decoded or _of(values, _GENERATED)
    read = prefilled or _of(values, _READ)
    running = _of(values, _RUNNING)
    if not generated and not read and not running:
        return None
    accepted = [value for value in _of(values, _ACCEPTED) if value > 0]
    return Progress(
        prompt_tokens=_total(read),
        generation_tokens=_total(generated),
        running=_total(running),
        waiting=_total(_of(values, _WAITING)),
        kv_usage=max(_of(values, _KV_USAGE), default=None),
        tokens_per_s=sum(rates) if (rates := _of(values, _RATE)) else None,
        accept_length=sum(accepted) / len(accepted) if accepted else None,
    )


def of_loads(page: Any) -> Progress | None:
    """Progress from SGLang's ``/v1/loads``: no counters of tokens, but it needs no flag."""
    loads = page.get("loads") if isinstance(page, dict) else None
    if not isinstance(loads, list):
        return None
    ranks = [rank for rank in loads if isinstance(rank, dict)]
    return Progress(
        running=_total(_numbers(ranks, "num_running_reqs")),
        waiting=_total(_numbers(ranks, "num_waiting_reqs")),
        kv_usage=max(_numbers(ranks, "token_usage"), default=None),
        tokens_per_s=sum(rates) if (rates := _numbers(ranks, "gen_throughput")) else None,
    )


def _of(values: dict[str, list[float]], names: tuple[str, ...]) -> list[float]:
    return next((values[name] for name in names if name in values), [])


def _numbers(ranks: list[dict[str, Any]], name: str) -> list[float]:
    return [float(rank[name]) for rank in ranks if isinstance(rank.get(name), int | float)]


def _total(values: list[float]) -> int | None:
    return int(sum(values)) if values else None
