"""Tokens per second over the last minute."""

from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
SAMPLES_MAX: Final = 100_000


class TokenRate:
    """Sum of (time, tokens) over a sliding window."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES_MAX)
        self._tokens = 0
        self._since_s: float | None = None

    def add(self, at_s: float, tokens: int) -> None:
        if len(self._samples) == SAMPLES_MAX:
            self._tokens -= self._samples[0][1]
        self._samples.append((at_s, tokens))
        self._tokens += tokens
        if self._since_s is None:
            self._since_s = at_s

    def per_s(self, now_s: float) -> float | None:
        """``None`` before the first answer."""
        while self._samples and self._samples[0][0] < now_s - WINDOW_S:
            self._tokens -= self._samples.popleft()[1]
        if self._since_s is None:
            return None
        return self._tokens / max(1.0, min(WINDOW_S, now_s - self._since_s))
