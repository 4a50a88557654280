from types import SimpleNamespace

import pytest

from regen_common.clock import SystemClock
from regen_common.objects import PUT_DEADLINE_S, upload


class HandClock(SystemClock):
    """Stands still until a test moves it."""

    now_s = 1_000.0

    def monotonic_s(self) -> float:
        return self.now_s


def test_a_body_flows_until_its_deadline_and_no_byte_longer() -> None:
    clock = HandClock()
    body = upload.Upload(b"abcdef", clock=clock, until_s=clock.now_s + 5)
    assert body.read(2) == b"ab"
    clock.now_s += 4.9
    assert body.read(2) == b"cd"
    clock.now_s += 0.2
    with pytest.raises(upload.OutOfTimeError):
        body.read(2)


def test_no_attempt_begins_after_the_deadline_of_its_body() -> None:
    clock = HandClock()
    request = SimpleNamespace(body=upload.Upload(b"", clock=clock, until_s=clock.now_s + 5))
    upload.require_time(request=request)
    clock.now_s += 5
    with pytest.raises(upload.OutOfTimeError):
        upload.require_time(request=request)


def test_requests_without_a_deadline_pass() -> None:
    upload.require_time(request=SimpleNamespace(body=b"x"), operation_name="PutObject")


def test_sending_the_last_block_and_the_wait_for_the_answer_fit_into_the_deadline() -> None:
    timing = upload.Timing()
    assert timing.deadline_s == PUT_DEADLINE_S
    assert timing.send_s + timing.connect_s + timing.read_s == PUT_DEADLINE_S
    assert timing.send_s >= timing.connect_s + timing.read_s, "time for a second attempt"
