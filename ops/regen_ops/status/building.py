"""From what was read to the report. Pure."""

from collections import defaultdict
from typing import Final

from regen_common.clock import iso_utc
from regen_common.records import labels
from regen_common.run import keys
from regen_ops.failures import Failure
from regen_ops.status import concerns, eta
from regen_ops.status import report as r
from regen_ops.status.reading import Raw, Sample

RECENT_S: Final = 300.0
RECENT_MIN_S: Final = 5.0
INDICES_MAX: Final = 1_000


def build(raw: Raw) -> r.Report:
    """The report of one moment."""
    books = raw.books
    total = Sample(
        at_s=raw.now_s,
        answers=int(_sum(raw, "finished")),
        tokens=int(_sum(raw, "tokens")),
    )
    rates = _rates(raw, total)
    work = {category: _work(raw, category) for category in keys.CATEGORIES}
    speed = rates.output_tokens_per_s.recent
    whole_eta = eta.eta(list(work.values()), tokens_per_s=speed)
    since_s = raw.unwritten_since_s
    unfinished = r.Report(
        run=raw.config.run,
        state=_state(raw),
        totals=r.Totals(
            input=books.input,
            done=books.done,
            failed=books.failed,
            rejected=books.rejected,
            pending=books.pending,
            unaccounted=books.unaccounted,
            redo=books.redo,
        ),
        rates=rates,
        eta_s=whole_eta,
        output_tokens=total.tokens,
        batches=r.Batches(
            count=int(raw.stats.get("batches", 0)), bytes=int(raw.stats.get("batch_bytes", 0))
        ),
        max_tokens=raw.config.max_tokens,
        backlog=r.Backlog(
            records=books.stream,
            bytes=raw.backlog,
            oldest_s=None if since_s is None else max(0.0, raw.now_s - since_s),
        ),
        categories={
            category: r.Category(
                input=counts.input,
                done=counts.done,
                failed=counts.failed,
                pending=counts.pending,
                eta_s=0.0 if not counts.pending else whole_eta.mid,
                mean_output_tokens=work[category].mean_tokens,
            )
            for category, counts in books.categories.items()
        },
        gpus=[_gpu(gpu, raw.now_s) for gpu in raw.gpus],
        quality=_quality(raw),
        failures=_failures(raw.failures),
        concerns=[],
        destination=raw.config["destination"],
        multi_turn=raw.multi_turn,
        turns=raw.config["turns"],
        halt=books.halt,
        at=iso_utc(raw.now_s),
        places={
            "not_enqueued": books.not_enqueued,
            "queued": books.queued,
            "leased": books.leased,
            "stream": books.stream,
        },
    )
    return concerns.added(unfinished)


def _sum(raw: Raw, name: str) -> float:
    return sum(raw.stats.get(f"{name}:{category}", 0.0) for category in keys.CATEGORIES)


def _state(raw: Raw) -> str:
    books = raw.books
    if books.halt is not None:
        return "halted"
    if books.over and books.unaccounted == 0:
        return "finished"
    if books.suspended:
        return "suspended"
    alive = any(gpu.get("state") not in ("gone", "left", None) for gpu in raw.gpus)
    to_ask = books.not_enqueued + books.queued + books.leased
    return "running" if alive or not to_ask else "idle"


def _rates(raw: Raw, total: Sample) -> r.Rates:
    active_s = raw.stats.get("active_s", 0.0)

    def overall(amount: float) -> float | None:
        return amount / active_s if active_s >= 1 else None

    since = _since(raw.samples, total.at_s)

    def recent(field: str) -> float | None:
        if since is None:
            return None
        amount = float(getattr(total, field) - getattr(since, field))
        return amount / (total.at_s - since.at_s)

    return r.Rates(
        requests_per_s=r.Rate(recent=recent("answers"), overall=overall(total.answers)),
        output_tokens_per_s=r.Rate(recent=recent("tokens"), overall=overall(total.tokens)),
    )


def _since(samples: list[Sample], now_s: float) -> Sample | None:
    """The sample five minutes back, or the oldest there is."""
    old_enough = [s for s in samples if now_s - s.at_s >= RECENT_MIN_S]
    within = [s for s in old_enough if now_s - s.at_s <= RECENT_S]
    if within:
        return within[-1]
    return old_enough[0] if old_enough else None


def _work(raw: Raw, category: str) -> eta.Work:
    counts = raw.books.categories[category]
    return eta.work(
        left=counts.queued + counts.leased + counts.not_enqueued,
        answers=int(raw.stats.get(f"finished:{category}", 0)),
        tokens=raw.stats.get(f"tokens:{category}", 0.0),
        tokens_sq=raw.stats.get(f"tokens_sq:{category}", 0.0),
    )


def _number(text: str | None) -> float | None:
    return None if text in (None, "") else float(text)


def _whole(text: str | None) -> int | None:
    return None if text in (None, "") else int(float(text))


def _gpu(fields: dict[str, str], now_s: float) -> r.Gpu:
    return r.Gpu(
        host=fields["host"],
        gpu=int(fields["gpu"]),
        state=fields.get("state", "unknown"),
        running=_whole(fields.get("running")),
        slots=_whole(fields.get("slots")),
        output_tokens_per_s=_number(fields.get("output_tokens_per_s")),
        accept_length=_number(fields.get("accept_length")),
        utilisation=_number(fields.get("utilisation")),
        watts=_number(fields.get("watts")),
        last_error=fields.get("last_error") or None,
        engine=fields.get("engine") or None,
        model=fields.get("model") or None,
        seen_s_ago=max(0.0, now_s - float(fields["seen_at"])),
    )


def _quality(raw: Raw) -> dict[str, r.Label]:
    done = raw.books.done
    out = {}
    for label in labels.LABELS:
        count = int(sum(raw.stats.get(f"label:{label}:{c}", 0) for c in keys.CATEGORIES))
        out[label] = r.Label(count=count, rate=count / done if done else None)
    return out


def _failures(failures: list[Failure]) -> list[r.FailureClass]:
    by_class: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        by_class[failure.klass].append(failure)
    ordered = sorted(by_class.items(), key=lambda item: -len(item[1]))
    return [
        r.FailureClass(
            klass=klass,
            count=len(found),
            indices=sorted(f.index for f in found)[:INDICES_MAX],
            detail=next((f.detail for f in found if f.detail), None),
            concentrated_in=None,
        )
        for klass, found in ordered
    ]
