"""What somebody should look at, worst first: each with evidence and the command for it. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from regen_ops.status.report import Concern, Report

SEVERITIES: Final = ("error", "warning", "notice")
TRUNCATED_RATE: Final = 0.05
FAILED_RATE: Final = 0.01
BACKLOG_BYTES: Final = 256 << 20
UNWRITTEN_S: Final = 300.0
"""Five times what a sink waits by default until it cuts a batch."""

FEW: Final = 100


def added(report: Report) -> Report:
    """The report with its concerns."""
    found = [concern for check in _CHECKS for concern in check(report)]
    found.sort(key=lambda concern: SEVERITIES.index(concern.severity))
    return replace(report, concerns=found)


def _halted(report: Report) -> Iterator[Concern]:
    if report.halt is not None:
        yield Concern(
            id="halted",
            severity="error",
            text="The run is halted: consumers finish what they have and claim nothing more.",
            evidence=str(report.halt.get("detail") or report.halt.get("why")),
            command=f"regen-resume --run {report.run}",
        )


def _suspended(report: Report) -> Iterator[Concern]:
    if report.state == "suspended":
        yield Concern(
            id="suspended",
            severity="warning",
            text="All runs in this Redis are suspended.",
            evidence="rq:suspended is set",
            command="rq resume",
        )


def _unaccounted(report: Report) -> Iterator[Concern]:
    n = report.totals.unaccounted
    if n:
        yield Concern(
            id="unaccounted",
            severity="warning",
            text="Prompts are in no place, after a deletion by hand or an rq command that died. "
            "Consumers put them back within seconds; if none runs, regen-produce does.",
            evidence=f"{n} of {report.totals.input}",
            command=None,
        )


def _nobody_works(report: Report) -> Iterator[Concern]:
    if report.state == "idle" and report.totals.pending:
        yield Concern(
            id="no_consumer",
            severity="warning",
            text="Prompts wait and no consumer is alive.",
            evidence=f"{report.totals.pending} pending",
            command=f"regen-consume --run {report.run} --gpu 0",
        )


def _backlog(report: Report) -> Iterator[Concern]:
    backlog = report.backlog
    waited_s = backlog.oldest_s or 0
    if backlog.bytes >= BACKLOG_BYTES or waited_s >= UNWRITTEN_S:
        yield Concern(
            id="backlog",
            severity="warning",
            text="Answers wait for the destination. Is a sink alive, and what does it say?",
            evidence=f"{backlog.records} records, {backlog.bytes / (1 << 20):.1f} MiB, "
            f"the oldest for {waited_s:.0f} s",
            command=f"regen-sink --run {report.run}",
        )


def _truncated(report: Report) -> Iterator[Concern]:
    label = report.quality.get("truncated")
    if label and label.rate and label.rate > TRUNCATED_RATE and report.totals.done >= FEW:
        yield Concern(
            id="truncated",
            severity="warning",
            text="Many answers are cut at the cap. Raise it for what is still to come.",
            evidence=f"{label.rate:.1%} of the answers at {report.max_tokens} tokens",
            command=f"regen-config --run {report.run} set max_tokens={report.max_tokens * 2}",
        )


def _failed(report: Report) -> Iterator[Concern]:
    seen = report.totals.done + report.totals.failed + report.places.get("stream", 0)
    if report.totals.failed and seen and report.totals.failed / seen >= FAILED_RATE:
        worst = report.failures[0] if report.failures else None
        yield Concern(
            id="failed",
            severity="warning",
            text="Prompts fail.",
            evidence=f"{report.totals.failed} of {seen}"
            + (f", most as {worst.klass}: {worst.detail}" if worst else ""),
            command=f"regen-requeue --run {report.run} --failed",
        )


_CHECKS: Final[tuple[Callable[[Report], Iterator[Concern]], ...]] = (
    _halted,
    _suspended,
    _unaccounted,
    _nobody_works,
    _backlog,
    _failed,
    _truncated,
)
