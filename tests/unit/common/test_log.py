"""Log lines: one a line, dated, without secrets, and not the same one all the time."""

import io
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from regen_common import log


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log.setup()
    yield sys.stderr  # type: ignore[misc]
    logging.getLogger("regen").handlers.clear()


def test_a_line_begins_with_date_level_and_event(said: io.StringIO) -> None:
    log.info("batch_written", records=3, where="a b", share=0.25)
    line = said.getvalue()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info batch_written ", line)
    assert line.endswith('records=3 where="a b" share=0.25\n')


def test_no_secret_gets_through(said: io.StringIO) -> None:
    log.add_secret("k-secret-7")
    log.warning("x", url="redis://:pass%40word@h:1/0", key="Bearer k-secret-7")
    assert "pass%40word" not in said.getvalue()
    assert "k-secret-7" not in said.getvalue()
    assert "redis://***@h:1/0" in said.getvalue()


def test_what_is_waited_for_is_not_said_all_the_time(said: io.StringIO) -> None:
    moment = 1_800_000_000.0
    logger = logging.getLogger("regen")

    def after(seconds: float, event: str = "redis_waited_for") -> int:
        record = logger.makeRecord("regen", logging.WARNING, "", 0, event, (), None)
        record.waiting = True
        record.created = moment + seconds
        before = said.getvalue().count("\n")
        logger.handle(record)
        return said.getvalue().count("\n") - before

    shown = [after(0), after(1), after(29.9), after(30), after(31), after(31, "other"), after(60)]
    assert shown == [1, 0, 0, 1, 0, 1, 1]


def test_only_waiting_is_rationed(said: io.StringIO) -> None:
    for _ in range(3):
        log.warning("fault", index=1)
        log.waiting("redis_waited_for")
    assert said.getvalue().count("fault") == 3
    assert said.getvalue().count("redis_waited_for") == 1
