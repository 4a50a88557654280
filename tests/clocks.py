"""A clock for tests: time passes only by sleeping, and sleeping takes no time."""

import asyncio


class FakeClock:
    """Sleeps move the time at once and let other tasks run."""

    def __init__(self, now_s: float = 1_800_000_000.0) -> None:
        self.now_s = now_s
        self.slept_s: list[float] = []

    def time_s(self) -> float:
        return self.now_s

    def monotonic_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept_s.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)
