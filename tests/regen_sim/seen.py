"""What the server saw, for ``GET /_sim/stats`` and ``GET /_sim/requests``."""

import time
from collections import Counter, deque
from typing import Any, Final

import orjson

from regen_sim import faults, scheduler

_KEPT_REQUESTS: Final = 200
_KEPT_BYTES_MAX: Final = 64 * 1024


class Seen:
    """Counts since the start. Prompts are counted by their digest."""

    def __init__(self) -> None:
        self.started_s = time.monotonic()
        self.first_s: float | None = None
        self.last_s: float | None = None
        self.paths: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.prompts: Counter[int] = Counter()
        self.generations = 0
        self.prompt_tokens = 0
        self.prefilled_tokens = 0  # counted before an answer is made, prompt_tokens after it
        self.cached_tokens = 0
        self.completed = 0
        self.aborted = 0
        self.lost_clients = 0
        self.connections_open = 0
        self.connections_opened = 0
        self.last_requests: deque[bytes] = deque(maxlen=_KEPT_REQUESTS)

    def generation(self, digest: str, raw: bytes) -> None:
        """A request that would have text generated has come in."""
        self.generations += 1
        self.prompts[int(digest, 16)] += 1
        self.last_requests.append(raw[:_KEPT_BYTES_MAX])
        if self.first_s is None:
            self.first_s = time.monotonic()

    def ended(self, ending: scheduler.Ending, prompt_tokens: int) -> None:
        """A generation is over."""
        self.last_s = time.monotonic()
        self.prompt_tokens += prompt_tokens
        self.completed += ending == "done"
        self.aborted += ending != "done"

    def stats(
        self, slots: scheduler.Scheduler, box: faults.Box, *, with_digests: bool
    ) -> dict[str, Any]:
        """Everything as JSON; ``mean_running`` is over the time since the first request."""
        span_s = 0.0 if self.first_s is None else time.monotonic() - self.first_s
        found: dict[str, Any] = {
            "requests": self.generations,
            "prompts": len(self.prompts),
            "completed": self.completed,
            "aborted": self.aborted,
            "lost_clients": self.lost_clients,
            "running": len(slots.running),
            "waiting": len(slots.waiting),
            "running_max": slots.running_peak,
            "waiting_max": slots.waiting_peak,
            "busy_slot_s": slots.busy_s,
            "mean_running": slots.busy_s / span_s if span_s else 0.0,
            "span_s": span_s,
            "active_s": self.active_s,
            "queue_wait_s": slots.waited_s,
            "queue_wait_s_max": slots.waited_s_max,
            "generated_tokens": slots.tokens_now(),
            "prompt_tokens": self.prompt_tokens,
            "connections": {"open": self.connections_open, "opened": self.connections_opened},
            "paths": dict(self.paths),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "fault_hits": dict(box.hits),
        }
        if with_digests:
            found["digests"] = {f"{prompt:016x}": count for prompt, count in self.prompts.items()}
        return found

    @property
    def active_s(self) -> float:
        """From the first request to the last end."""
        if self.first_s is None or self.last_s is None:
            return 0.0
        return self.last_s - self.first_s

    def requests(self) -> list[Any]:
        """The last requests' bodies, oldest first; one that is no JSON as text."""
        return [_shown(raw) for raw in self.last_requests]


def _shown(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.decode("utf-8", "replace")
