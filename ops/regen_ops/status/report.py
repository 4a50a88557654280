"""The Report: what status, page, metrics and ``--json`` show. The fields are a stable contract.

Unknown figures are ``None``, never 0. Counts are prompts, times are seconds.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """The books: input = done + failed + rejected + pending + unaccounted."""

    input: int
    done: int
    failed: int
    rejected: int
    pending: int
    unaccounted: int
    redo: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """``recent``: over the last five minutes; ``overall``: over the time with answers in it."""

    recent: float | None
    overall: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    requests_per_s: Rate
    output_tokens_per_s: Rate


@dataclass(frozen=True, kw_only=True, slots=True)
class Eta:
    low: float | None
    mid: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Batches:
    count: int
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """Records accepted and not yet at the destination; ``bytes`` uncompressed.

    ``oldest_s``: how long the oldest has waited.
    """

    records: int
    bytes: int
    oldest_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    input: int
    done: int
    failed: int
    pending: int
    eta_s: float | None
    mean_output_tokens: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    host: str
    gpu: int
    state: str
    running: int | None
    slots: int | None
    output_tokens_per_s: float | None
    accept_length: float | None
    utilisation: float | None
    watts: float | None
    last_error: str | None
    engine: str | None
    model: str | None
    seen_s_ago: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """``rate``: share of the answers at the destination."""

    count: int
    rate: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureClass:
    """``indices``: the first 1,000. JSON has the field as ``class``."""

    klass: str
    count: int
    indices: list[int]
    detail: str | None
    concentrated_in: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Concern:
    """``severity``: ``error``, ``warning`` or ``notice``."""

    id: str
    severity: str
    text: str
    evidence: str
    command: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """One run at one moment."""

    run: str
    state: str
    totals: Totals
    rates: Rates
    eta_s: Eta
    output_tokens: int
    batches: Batches
    max_tokens: int
    backlog: Backlog
    categories: dict[str, Category]
    gpus: list[Gpu]
    quality: dict[str, Label]
    failures: list[FailureClass]
    concerns: list[Concern]
    destination: str | None = None
    multi_turn: int | None = None
    turns: str | None = None
    halt: dict[str, Any] | None = None
    at: str = ""
    places: dict[str, int] = field(default_factory=dict)


def to_json(report: Report) -> bytes:
    """The report as JSON, with ``failures[].class``."""
    tree = asdict(report)
    for failure in tree["failures"]:
        failure["class"] = failure.pop("klass")
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2)
