"""The Lua sources of the transitions, put together: flags, clock, prelude, body."""

from functools import cache
from importlib import resources
from typing import Final

TRANSITIONS: Final = (
    "create",
    "configure",
    "enqueue",
    "claim",
    "heartbeat",
    "finish",
    "fail",
    "release",
    "reap",
    "cut",
    "commit",
    "requeue",
    "retry",
    "halt",
    "resume",
    "books",
)

BRING_NEW_WORK: Final = frozenset({"create", "enqueue", "claim", "requeue", "retry"})
"""Refused while Redis is at its maxmemory; all others run, so that a full Redis drains."""

READ_ONLY: Final = frozenset({"books"})


@cache
def part(name: str) -> str:
    """One file of ``queue/lua`` as it stands."""
    return resources.files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")


def source(name: str, *, clock: str | None = None) -> str:
    """The whole script of a transition. ``clock`` replaces ``clock.lua`` (tests move the time)."""
    flags = "no-writes" if name in READ_ONLY else "allow-oom"
    head = "#!lua" if name in BRING_NEW_WORK else f"#!lua flags={flags}"
    body = (clock or part("clock"), part("prelude"), part(name))
    return "\n".join((head, *body))
