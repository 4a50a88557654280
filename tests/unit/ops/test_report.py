"""Concerns are raised by what the report shows, and the page says what the report holds."""

import io
from dataclasses import replace
from typing import Any

import orjson
import pytest
from rich.console import Console

from regen_ops.status import concerns, text
from regen_ops.status import report as reports

UNKNOWN = reports.Rate(recent=None, overall=None)
REPORT = reports.Report(
    run="regen",
    state="running",
    totals=reports.Totals(
        input=1000, done=600, failed=0, rejected=20, pending=380, unaccounted=0, redo=0
    ),
    rates=reports.Rates(requests_per_s=UNKNOWN, output_tokens_per_s=UNKNOWN),
    eta_s=reports.Eta(low=None, mid=None, high=None),
    output_tokens=0,
    batches=reports.Batches(count=1, bytes=2048),
    max_tokens=8192,
    backlog=reports.Backlog(records=0, bytes=0, oldest_s=None),
    categories={},
    gpus=[],
    quality={},
    failures=[],
    concerns=[],
)


def totals(**changed: int) -> reports.Totals:
    return replace(REPORT.totals, **changed)


def shown(report: reports.Report, **options: Any) -> str:
    screen = io.StringIO()
    Console(width=200, file=screen).print(text.render(report, **options))
    return "\n".join(line.rstrip() for line in screen.getvalue().splitlines())


@pytest.mark.parametrize(
    ("change", "ids"),
    [
        ({}, []),
        ({"halt": {"detail": "87 % empty"}, "state": "halted"}, ["halted"]),
        ({"state": "suspended"}, ["suspended"]),
        ({"totals": totals(unaccounted=1)}, ["unaccounted"]),
        ({"state": "idle"}, ["no_consumer"]),
        ({"state": "idle", "totals": totals(pending=0)}, []),
        ({"backlog": reports.Backlog(records=9, bytes=256 << 20, oldest_s=9)}, ["backlog"]),
        ({"backlog": reports.Backlog(records=9, bytes=(256 << 20) - 1, oldest_s=299)}, []),
        ({"backlog": reports.Backlog(records=9, bytes=9, oldest_s=300)}, ["backlog"]),
        ({"totals": totals(failed=7)}, ["failed"]),
        ({"totals": totals(failed=6)}, []),
        ({"quality": {"truncated": reports.Label(count=36, rate=0.06)}}, ["truncated"]),
        ({"quality": {"truncated": reports.Label(count=30, rate=0.05)}}, []),
        ({"quality": {"truncated": reports.Label(count=6, rate=None)}}, []),
        (
            {"halt": {"why": "by hand"}, "state": "halted", "totals": totals(failed=99)},
            ["halted", "failed"],
        ),
    ],
)
def test_a_concern_for_each_thing_that_wants_a_hand(change: dict[str, Any], ids: list[str]) -> None:
    found = concerns.added(replace(REPORT, **change)).concerns
    assert [concern.id for concern in found] == ids


def test_a_command_names_the_redis_that_only_this_run_has() -> None:
    report = concerns.added(replace(REPORT, state="suspended", totals=totals(failed=99)))
    page = shown(report, redis="unix:///run/redis.sock")
    assert "→ rq resume --url unix:///run/redis.sock\n" in page
    assert "--failed --redis unix:///run/redis.sock" in page
    assert "→ regen-requeue --run regen --failed\n" in shown(report)
    assert page.index("Prompts fail.") < page.index("Categories")  # a small screen shows it


def test_no_command_is_advised_that_nothing_can_carry_out() -> None:
    page = shown(concerns.added(replace(REPORT, totals=totals(failed=99))), over=True)
    assert "Prompts fail." in page
    assert "→ regen" not in page


def test_unknown_is_a_dash_and_one_is_singular() -> None:
    page = shown(REPORT)
    assert "– req/s" in page
    assert "1 batch · 2.0 KiB" in page
    assert "0 records" in page


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (None, "–"),
        (0.4, "0 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (7199, "2 h 00 min"),
        (3600 * 47.99, "47 h 59 min"),
        (3600 * 50, "2 d 2 h"),
    ],
)
def test_durations(seconds: float | None, says: str) -> None:
    assert text.duration(seconds) == says


def test_json_calls_a_class_class() -> None:
    failure = reports.FailureClass(
        klass="cut", count=1, indices=[3], detail="gone", concentrated_in=None
    )
    tree = orjson.loads(reports.to_json(replace(REPORT, failures=[failure])))
    assert tree["failures"][0]["class"] == "cut"
    assert "klass" not in tree["failures"][0]
    assert tree["eta_s"] == {"low": None, "mid": None, "high": None}
