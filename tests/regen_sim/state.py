"""What all parts of one running simulation share."""

import time
from dataclasses import dataclass, field
from typing import Final

from regen_sim import faults, generating, options, scheduler, seen

_RATE_WINDOW_S: Final = 0.5


@dataclass(kw_only=True, slots=True)
class State:
    """``draining`` since SIGTERM; ``leaked``: rids that 0.5.11 never lets go of."""

    settings: options.Options
    box: faults.Box
    seen: seen.Seen
    slots: scheduler.Scheduler
    kitchen: generating.Kitchen
    draining: bool = False
    leaked: set[str] = field(default_factory=set)
    hanging_unhealthy: int = 0
    rate_at_s: float = field(default_factory=time.monotonic)
    rate_tokens: int = 0
    rate: float = 0.0

    @property
    def starting(self) -> bool:
        age_s = time.monotonic() - self.seen.started_s
        return age_s < self.settings.load_s + self.settings.startup_s

    @property
    def finished(self) -> bool:
        """Told to end, and nothing left that keeps it."""
        stuck = self.settings.sigterm_never_exits or bool(self.leaked)
        return self.draining and self.slots.idle and not stuck

    def tokens_per_s(self) -> float:
        """Over the time since the last look, which is at least half a second ago."""
        now_s, tokens = time.monotonic(), self.slots.tokens_now()
        if now_s - self.rate_at_s >= _RATE_WINDOW_S:
            self.rate = (tokens - self.rate_tokens) / (now_s - self.rate_at_s)
            self.rate_at_s, self.rate_tokens = now_s, tokens
        return self.rate


def make(settings: options.Options) -> State:
    """The state of a simulation that starts now."""
    box = faults.Box(settings.faults)
    slots = scheduler.Scheduler(running_max=settings.max_running, waiting_max=settings.max_queued)
    slots.freeze(frozen=box.server_wide("freeze") is not None)
    return State(
        settings=settings,
        box=box,
        seen=seen.Seen(),
        slots=slots,
        kitchen=generating.Kitchen(settings),
    )
