"""The report as a person reads it: at a glance, unknown figures as a dash."""

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from regen_ops.status.report import Report

DASH: Final = "\N{EN DASH}"
BAR_WIDTH: Final = 30
STYLES: Final = {
    "running": "bold green",
    "finished": "bold green",
    "halted": "bold red",
    "suspended": "bold yellow",
    "idle": "bold yellow",
}
SEVERITY_STYLES: Final = {"error": "bold red", "warning": "yellow", "notice": "cyan"}
KIB: Final = 1024


def number(value: float | None, digits: int = 0) -> str:
    return DASH if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    return DASH if value is None else f"{value:.1%}"


def size(n_bytes: float) -> str:
    """``4.7 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < KIB:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= KIB
    return f"{n_bytes:.1f} TiB"


def duration(seconds: float | None) -> str:
    """``2 h 05 m``; a dash when unknown."""
    if seconds is None:
        return DASH
    if seconds < 90:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:  # noqa: PLR2004
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:  # noqa: PLR2004
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def counted(n: int, one: str, many: str) -> str:
    """``1 batch``, ``2 batches``."""
    return f"{n:,} {one if n == 1 else many}"


def render(report: Report, *, redis: str | None = None, over: bool = False) -> RenderableType:
    """The whole page. ``redis``: what commands must name; ``over``: no command reaches it now."""
    parts: list[RenderableType] = [_head(report), _progress(report)]
    if report.concerns:  # above the tables: a small screen must not cut them off
        parts.append(_concerns(report, redis=redis, over=over))
    parts.append(_categories(report))
    if report.gpus:
        parts.append(_gpus(report))
    parts.append(_quality(report))
    if report.failures:
        parts.append(_failures(report))
    return Group(*parts)


def _head(report: Report) -> Text:
    style = STYLES.get(report.state, "bold")
    return Text.assemble(
        ("Run ", "dim"),
        (report.run, "bold"),
        "  ",
        (report.state, style),
        (f"  {report.at}", "dim"),
    )


def _progress(report: Report) -> Table:
    totals, rates, eta = report.totals, report.rates, report.eta_s
    table = _grid()
    table.add_row("Prompts", f"{_bar(report)} of {number(totals.input)}")
    answered = report.places.get("stream", 0)
    table.add_row(
        "",
        f"{number(totals.done)} done · {number(answered)} answered, to be written · "
        f"{number(totals.pending - answered)} to be asked · "
        f"{number(totals.failed)} failed · {number(totals.rejected)} rejected",
    )
    if totals.redo:
        table.add_row("", f"{number(totals.redo)} of the done are being asked again")
    if totals.unaccounted:
        table.add_row("", Text(f"{number(totals.unaccounted)} unaccounted", style="red"))
    places = " · ".join(
        f"{number(n)} {name.replace('_', ' ')}" for name, n in report.places.items()
    )
    table.add_row("Places", places)
    requests, tokens = rates.requests_per_s, rates.output_tokens_per_s
    table.add_row(
        "Speed",
        f"{number(requests.recent, 2)} req/s · {number(tokens.recent)} tok/s in the last 5 min"
        f"   ({number(requests.overall, 2)} req/s · {number(tokens.overall)} tok/s in all)",
    )
    known = eta.mid is not None
    span = f"{duration(eta.mid)}  ({duration(eta.low)} to {duration(eta.high)})" if known else DASH
    table.add_row("Through in", span)
    table.add_row(
        "Written",
        f"{counted(report.batches.count, 'batch', 'batches')} · {size(report.batches.bytes)}"
        f" → {report.destination or DASH}",
    )
    table.add_row(
        "On the way",
        f"{counted(report.backlog.records, 'record', 'records')} · {size(report.backlog.bytes)}"
        f"   cap {number(report.max_tokens)} tokens · {number(report.output_tokens)} made so far",
    )
    return table


def _bar(report: Report) -> str:
    """Settled prompts solid, answered ones that are not written yet lighter."""
    totals = report.totals
    settled = totals.done + totals.failed + totals.rejected
    answered = report.places.get("stream", 0)
    whole = totals.input or 1
    solid = int(settled / whole * BAR_WIDTH)
    light = int((settled + answered) / whole * BAR_WIDTH) - solid
    bar = "█" * solid + "▒" * light + "░" * (BAR_WIDTH - solid - light)
    return f"{bar} {settled / whole:.1%}"


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", header_style="dim")
    return table


def _categories(report: Report) -> Table:
    table = _table(
        "\nCategories", "", "prompts", "done", "failed", "pending", "tokens each", "through in"
    )
    for name, category in report.categories.items():
        table.add_row(
            name,
            number(category.input),
            number(category.done),
            number(category.failed),
            number(category.pending),
            number(category.mean_output_tokens),
            duration(category.eta_s),
        )
    multi = DASH if report.multi_turn is None else number(report.multi_turn)
    table.add_row("multi-turn", multi, *[""] * 5, style="dim")
    return table


def _gpus(report: Report) -> Table:
    table = _table("\nGPUs", "", "state", "slots", "tok/s", "accept", "seen", "last error")
    for gpu in report.gpus:
        table.add_row(
            f"{gpu.host}:{gpu.gpu}",
            gpu.state,
            f"{number(gpu.running)}/{number(gpu.slots)}",
            number(gpu.output_tokens_per_s),
            number(gpu.accept_length, 2),
            DASH if gpu.seen_s_ago is None else f"{duration(gpu.seen_s_ago)} ago",
            (gpu.last_error or DASH)[:70],
        )
    return table


def _quality(report: Report) -> Table:
    table = _grid()
    shown = [
        f"{name} {number(label.count)} ({share(label.rate)})"
        for name, label in report.quality.items()
        if label.count
    ]
    table.add_row("\nQuality", "\n" + (" · ".join(shown) or "no answer carries a label"))
    return table


def _failures(report: Report) -> Table:
    table = _table("\nFailures", "class", "count", "first indices", "for example")
    for failure in report.failures:
        indices = ", ".join(str(index) for index in failure.indices[:5])
        example = (failure.detail or DASH)[:90]
        table.add_row(failure.klass, number(failure.count), indices, example)
    return table


def _at(command: str, redis: str | None) -> str:
    flag = "--url" if command.startswith("rq ") else "--redis"
    return f"{command} {flag} {redis}" if redis else command


def _concerns(report: Report, *, redis: str | None, over: bool) -> Table:
    table = _table("\nConcerns", "", "", "")
    for column in table.columns:
        column.justify = "left"
    for concern in report.concerns:
        text = Text(f"{concern.text} {concern.evidence}")
        if concern.command and not over:
            text.append(f"\n→ {_at(concern.command, redis)}", style="bold")
        table.add_row(
            Text(concern.severity, style=SEVERITY_STYLES[concern.severity]), concern.id, text
        )
    return table
