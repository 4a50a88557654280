"""A PUT's body that stops flowing in time: how PUT_DEADLINE_S holds for S3.

boto3's time-outs bound one silence of a socket, not an upload: a store that takes a byte now and
then keeps one PUT alive for ever, and eight attempts with back-off add up to minutes. So the
deadline travels with the body, which botocore reads from its start for each attempt, in blocks of
16 KiB while it sends::

    PUT_DEADLINE_S = send_s + connect_s + read_s
               120 =     80 +        10 +     30

* after ``send_s`` no attempt begins and no block is given out, so a body that is not through by
  then never is, and a store does not keep part of an object;
* the last block may wait ``connect_s`` (which is urllib3's time-out for sending too) for room in
  the socket;
* the store's answer is waited for ``read_s`` at most.

What remains is beyond any client: a request that was taken whole, in time, and that a store or a
proxy carries out later than that.
"""

import io
from dataclasses import dataclass
from typing import Any

from regen_common.clock import Clock
from regen_common.objects.interface import PUT_DEADLINE_S


class OutOfTimeError(Exception):
    """The body's deadline is over. Not for callers: the adapter maps it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """How long one attempt and all of them may take, in seconds. Tests have less patience."""

    connect_s: float = 10
    read_s: float = 30
    attempts_max: int = 8
    deadline_s: float = PUT_DEADLINE_S

    @property
    def send_s(self) -> float:
        return self.deadline_s - self.connect_s - self.read_s


class Upload(io.BytesIO):
    """``body`` until ``until_s`` on the monotonic clock; then :class:`OutOfTimeError`."""

    def __init__(self, body: bytes, *, clock: Clock, until_s: float) -> None:
        super().__init__(body)
        self._clock = clock
        self._until_s = until_s

    def read(self, size: int | None = -1, /) -> bytes:
        self.require_time()
        return super().read(size)

    def require_time(self) -> None:
        if self._clock.monotonic_s() >= self._until_s:
            raise OutOfTimeError


def require_time(request: Any, **_: Any) -> None:
    """For botocore's ``before-send``: no attempt begins after its body's deadline."""
    if isinstance(request.body, Upload):
        request.body.require_time()
