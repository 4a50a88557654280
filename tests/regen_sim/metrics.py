"""``/metrics`` in Prometheus' text format, under SGLang's names and with its labels.

As on a real server, ``generation_tokens_total`` and its neighbours count a request when it ends,
and only ``realtime_tokens_total`` (and the gauges) show that something moves before.
"""

import gzip
from typing import Final, NamedTuple

from regen_sim import options, response, scheduler, seen

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_GZIP_LEVEL: Final = 1
TOKENS_TOTAL_MAX: Final = 1_000_000
"""How many tokens the pretended KV cache holds."""


class Metric(NamedTuple):
    """One sample. Without ``help`` it goes on with the metric before it."""

    name: str
    kind: str  # counter or gauge
    help: str
    value: float
    where: str = "scheduler"  # whose labels it has
    extra: str = ""


def page(
    settings: options.Options,
    slots: scheduler.Scheduler,
    counts: seen.Seen,
    *,
    tokens_per_s: float,
    gzipped: bool,
) -> response.Response:
    """The whole page."""
    text = "".join(
        _lines(metric, settings) for metric in _metrics(settings, slots, counts, tokens_per_s)
    )
    body = text.encode()
    if not gzipped:
        return response.Response(200, body, _CONTENT_TYPE)
    headers = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))
    return response.Response(200, gzip.compress(body, _GZIP_LEVEL), _CONTENT_TYPE, headers)


def used_tokens(slots: scheduler.Scheduler) -> int:
    """What the running requests hold of the KV cache."""
    return slots.tokens_now() - slots.tokens_ended


def _metrics(
    settings: options.Options,
    slots: scheduler.Scheduler,
    counts: seen.Seen,
    tokens_per_s: float,
) -> list[Metric]:
    used = used_tokens(slots)
    spec = settings.spec or 0.0
    decode = slots.tokens_now()
    return [
        Metric("num_running_reqs", "gauge", "The number of running requests.", len(slots.running)),
        Metric(
            "num_queue_reqs",
            "gauge",
            "The number of requests in the waiting queue.",
            len(slots.waiting),
        ),
        Metric("num_used_tokens", "gauge", "The number of used tokens.", used),
        Metric("token_usage", "gauge", "The token usage.", used / TOKENS_TOTAL_MAX),
        Metric("gen_throughput", "gauge", "The generation throughput (token/s).", tokens_per_s),
        Metric("cache_hit_rate", "gauge", "The prefix cache hit rate.", 0.0),
        Metric("utilization", "gauge", "The utilization.", 0.0),
        Metric("spec_accept_length", "gauge", "Mean acceptance length of speculation.", spec),
        Metric("spec_accept_rate", "gauge", "Speculative acceptance rate.", min(1.0, spec / 4)),
        Metric("num_retracted_reqs", "gauge", "The number of retracted requests.", 0),
        Metric(
            "realtime_tokens_total",
            "counter",
            "Total number of tokens processed (updated on each log interval).",
            decode,
            extra='mode="decode",',
        ),
        Metric(
            "realtime_tokens_total",
            "counter",
            "",
            counts.prefilled_tokens - counts.cached_tokens,
            extra='mode="prefill_compute",',
        ),
        Metric(
            "realtime_tokens_total",
            "counter",
            "",
            counts.cached_tokens,
            extra='mode="prefill_cache",',
        ),
        Metric(
            "prompt_tokens_total",
            "counter",
            "Number of prefill tokens processed.",
            counts.prompt_tokens,
            "requests",
        ),
        Metric(
            "generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            slots.tokens_ended,
            "requests",
        ),
        Metric(
            "num_requests_total",
            "counter",
            "Number of requests processed.",
            counts.completed + counts.aborted,
            "requests",
        ),
        Metric(
            "num_aborted_requests_total",
            "counter",
            "Number of requests aborted.",
            counts.aborted,
            "plain",
        ),
    ]


def _lines(metric: Metric, settings: options.Options) -> str:
    name = f"sglang:{metric.name}"
    model = f'model_name="{settings.model}"'
    streaming = 'is_streaming="false",' if settings.is_new else ""
    match metric.where:
        case "requests":
            labels = f'engine_type="unified",{streaming}{model}'
        case "plain":
            labels = f'engine_type="unified",{model}'
        case _:
            ranks = 'moe_ep_rank="0",pp_rank="0",tp_rank="0"'
            labels = f'engine_type="unified",{metric.extra}{model},{ranks}'
    head = f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n" if metric.help else ""
    return f"{head}{name}{{{labels}}} {float(metric.value)}\n"
