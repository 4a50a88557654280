"""Misbehaviour on demand: which faults there are, and which one a request gets.

A fault applies to a request when its marker is in the last user text, its rate selects the
prompt's digest (the same prompts every time), and neither its count nor its count per prompt is
used up.
"""

import argparse
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

KINDS: Final[dict[str, frozenset[str]]] = {
    # the answer
    "trivial": frozenset(),
    "empty": frozenset(),
    "null_content": frozenset(),
    "thinking_only": frozenset({"closed"}),
    "truncated": frozenset({"share"}),
    "loop": frozenset({"tokens"}),
    "stray_think": frozenset(),
    "short_for_tokens": frozenset({"factor"}),
    "huge": frozenset({"mb"}),
    "tool_call": frozenset({"bare"}),
    "no_tool_call": frozenset(),
    "bad_tool_call": frozenset(),
    "abort": frozenset({"share"}),
    # the body around it
    "missing_choices": frozenset(),
    "empty_choices": frozenset(),
    "usage_missing": frozenset(),
    "usage_null": frozenset(),
    "usage_zero": frozenset(),
    "other_model": frozenset({"model"}),
    "lone_surrogate": frozenset(),
    "invalid_json": frozenset(),
    "invalid_utf8": frozenset(),
    # a refusal
    "context_length": frozenset(),
    "template": frozenset({"message"}),
    "bad_tools": frozenset(),
    "bad_tool_args": frozenset(),
    "bad_request": frozenset({"message"}),
    "unauthorized": frozenset(),
    "forbidden": frozenset(),
    "unknown_model": frozenset(),
    "rate_limit": frozenset({"retry_after"}),
    "internal": frozenset(),
    "queue_full": frozenset(),
    "proxy_html": frozenset({"status"}),
    # the connection
    "cut_before": frozenset({"after_s"}),
    "cut_headers": frozenset(),
    "cut_body": frozenset(),
    "short_body": frozenset({"bytes"}),
    "hang": frozenset({"health"}),
    # time and life
    "slow": frozenset({"seconds"}),
    "die": frozenset({"after_s", "code"}),
    # the whole server, whatever the prompt
    "freeze": frozenset(),
    "health_down": frozenset({"status"}),
    "health_flap": frozenset({"period_s"}),
    "health_hang": frozenset(),
    "no_metrics": frozenset(),
}
SERVER_WIDE: Final = frozenset(
    {"freeze", "health_down", "health_flap", "health_hang", "no_metrics"}
)
_SELECTORS: Final = frozenset({"rate", "count", "per_prompt", "marker"})


class FaultError(ValueError):
    """No such fault, or it has no such argument."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A fault, whom it hits, and its own arguments."""

    name: str
    rate: float = 1.0
    count: int | None = None
    per_prompt: int | None = None
    marker: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str, default: float) -> float:
        return float(self.args.get(name, default))


def make(name: str, settings: Mapping[str, Any]) -> Fault:
    """A fault from its settings; FaultError for one that does not exist."""
    if name not in KINDS:
        raise FaultError(f"no fault {name!r}; there are {', '.join(sorted(KINDS))}")
    if unknown := settings.keys() - KINDS[name] - _SELECTORS:
        raise FaultError(f"{name} has no {', '.join(sorted(unknown))}")
    count, per_prompt, marker = (settings.get(key) for key in ("count", "per_prompt", "marker"))
    return Fault(
        name=name,
        rate=float(settings.get("rate", 1.0)),
        count=None if count is None else int(count),
        per_prompt=None if per_prompt is None else int(per_prompt),
        marker=None if marker is None else str(marker),
        args={key: value for key, value in settings.items() if key not in _SELECTORS},
    )


def parse(text: str) -> Fault:
    """``NAME`` or ``NAME=key=value,key=value``, as on the command line."""
    name, _, rest = text.partition("=")
    pairs = [pair.partition("=") for pair in rest.split(",")] if rest else []
    try:
        return make(name, {key: _value(value) for key, _, value in pairs})
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _value(text: str) -> Any:
    """A number, true or false where it is one, else the text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


class _Entry:
    """A fault in force, and what is left of it."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._left = fault.count
        self._met: Counter[str] = Counter()

    def hits(self, digest: str, text: str) -> bool:
        fault = self.fault
        if fault.name in SERVER_WIDE or (fault.marker is not None and fault.marker not in text):
            return False
        if fault.rate < 1.0 and _share(fault.name, digest) >= fault.rate:
            return False
        if fault.per_prompt is not None:
            self._met[digest] += 1
            if self._met[digest] > fault.per_prompt:
                return False
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


class Box:
    """The faults in force."""

    def __init__(self, faults: tuple[Fault, ...] = ()) -> None:
        self.hits: Counter[str] = Counter()
        self._entries = [_Entry(fault) for fault in faults]

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def active(self) -> list[Fault]:
        return [entry.fault for entry in self._entries]

    def change(self, changes: Mapping[str, Any]) -> None:
        """Replace the faults of the names given: settings, a list of them, true, or null for off.

        Raises FaultError, and changes nothing, when one of them does not exist.
        """
        made = [fault for name, wanted in changes.items() for fault in _made(name, wanted)]
        kept = [entry for entry in self._entries if entry.fault.name not in changes]
        self._entries = kept + [_Entry(fault) for fault in made]

    def clear(self) -> None:
        self._entries = []

    def server_wide(self, name: str) -> Fault | None:
        """The fault of this name, if it is in force."""
        return next((fault for fault in self.active if fault.name == name), None)

    def choose(self, digest: str, text: str) -> list[Fault]:
        """The faults that this request gets: any number of slow ones, and at most one other."""
        chosen: list[Fault] = []
        for entry in self._entries:
            name = entry.fault.name
            taken = name != "slow" and any(other.name != "slow" for other in chosen)
            if not taken and entry.hits(digest, text):
                chosen.append(entry.fault)
                self.hits[name] += 1
        return chosen


def other_than_slow(chosen: list[Fault]) -> Fault | None:
    """The fault of a request that is not about time."""
    return next((fault for fault in chosen if fault.name != "slow"), None)


def _made(name: str, wanted: Any) -> list[Fault]:
    if wanted is None or wanted is False:
        if name not in KINDS:
            raise FaultError(f"no fault {name!r}")
        return []
    many = wanted if isinstance(wanted, list) else [wanted]
    return [make(name, {} if settings is True else settings) for settings in many]


def _share(name: str, digest: str) -> float:
    """Where in 0..1 the prompt is for this fault."""
    head = hashlib.sha256(f"{name}|{digest}".encode()).digest()[:4]
    return int.from_bytes(head, "big") / 2**32
