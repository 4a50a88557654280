"""Sending recorded requests again, and telling how an answer differs from the recorded one.

What must be the same: the status, the headers that matter, keys and their order, types, fixed
values and messages (numbers in them aside). Texts, counts and times are the simulation's own.
"""

import contextlib
import http.client
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "recordings"
_HEADERS: Final = ("content-type", "vary", "allow")
# a recorded prompt of 'hello's has a token per word, one of ours a token per four bytes
_WORDS_FOR_THE_SAME_TOKENS: Final = 0.672
_FREE_TEXTS: Final = frozenset({"content", "reasoning_content", "text", "arguments"})
_FIXED: Final = frozenset(
    {
        "code",
        "detail",
        "error",
        "finish_reason",
        "matched_stop",
        "max_model_len",
        "model",
        "name",
        "object",
        "owned_by",
        "param",
        "role",
        "type",
        "version",
        "weight_version",
    }
)
_TIMES: Final = re.compile(r"_ts$|_time$|latency$|throughput$|created|ts_tic|timestamp")
_DEADLINE_S: Final = 20.0


class Answer(NamedTuple):
    """Header names in lower case; ``body`` parsed where it is JSON."""

    status: int
    headers: dict[str, str]
    body: Any


def load(name: str) -> list[dict[str, Any]]:
    """The recordings of one file."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def send(host: str, port: int, request: Mapping[str, Any]) -> Answer:
    """Send a request as recorded: ``method``, ``path``, and perhaps ``headers`` and ``body``."""
    headers = dict(request.get("headers", {}))
    raw = _raw(request.get("body"))
    if raw is not None and not any(name.lower() == "content-type" for name in headers):
        headers["content-type"] = "application/json"
    connection = http.client.HTTPConnection(host, port, timeout=_DEADLINE_S)
    with contextlib.closing(connection):
        connection.request(request["method"], request["path"], raw, headers)
        response = connection.getresponse()
        data = response.read()
    found = {name.lower(): value for name, value in response.getheaders()}
    is_json = found.get("content-type") == "application/json"
    return Answer(response.status, found, json.loads(data) if is_json else data.decode())


def differences(got: Answer, recorded: Mapping[str, Any]) -> list[str]:
    """How the answer differs from a recording's ``response``; empty when it does not."""
    found = []
    if got.status != recorded["status"]:
        found.append(f"status {got.status}, not {recorded['status']}")
    found += [
        f"{name}: {got.headers.get(name)}, not {recorded.get(name)}"
        for name in _HEADERS
        if got.headers.get(name) != recorded.get(name)
    ]
    return found + list(_differing(got.body, recorded["body"], "body"))


def _raw(body: Any) -> bytes | None:
    if body is None:
        return None
    if "$raw" in body:
        return str(body["$raw"]).encode()
    if "$latin1" in body:
        return str(body["$latin1"]).encode("latin-1")
    return json.dumps(_unfolded(body)).encode()


def _unfolded(value: Any) -> Any:
    if isinstance(value, dict) and "$repeat" in value:
        text, count = value["$repeat"]
        return text * round(count * _WORDS_FOR_THE_SAME_TOKENS)
    if isinstance(value, dict):
        return {key: _unfolded(inner) for key, inner in value.items()}
    return [_unfolded(inner) for inner in value] if isinstance(value, list) else value


def _differing(got: Any, want: Any, path: str) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        if list(got) != list(want):
            yield f"{path} has {list(got)}, not {list(want)}"
        for name in want.keys() & got.keys():
            yield from _differing(got[name], want[name], f"{path}.{name}")
    elif isinstance(want, list) and isinstance(got, list):
        numbers = bool(want) and isinstance(want[0], int | float)
        if len(got) != len(want) and not (numbers and got):
            yield f"{path} has {len(got)} items, not {len(want)}"
        for ours, theirs in zip(got, want, strict=False):
            yield from _differing(ours, theirs, path)
    elif not _alike(got, want, path.rpartition(".")[2]):
        yield f"{path} is {got!r}, not {want!r}"


def _alike(got: Any, want: Any, key: str) -> bool:
    if key == "message":
        return re.sub(r"\d+", "N", str(got)) == re.sub(r"\d+", "N", str(want))
    if key in _FIXED:
        return bool(got == want)
    if _TIMES.search(key):
        return (got is None) == (want is None)
    if key in _FREE_TEXTS:
        return type(got) is type(want) and bool(got) == bool(want)
    return _kind(got) == _kind(want)


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and value is not True else str(type(value))
