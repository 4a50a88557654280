"""``regen-config``: the run's configuration, its history, and changes to it."""

import getpass
import os
import sys
from typing import Annotated, Any, Final

import orjson
import typer

from regen_common import cli, errors
from regen_common.clock import iso_utc
from regen_common.objects import open_objects
from regen_common.run import config, opening

EXAMPLES: Final = """
regen-config get
regen-config get max_tokens
regen-config set max_tokens=16384
regen-config set sampling.temperature=0.6 thinking=on
regen-config set 'halt_on={"rate": 0.5}'
"""


def configure(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="get or set.")],
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY[=VALUE]", help="Keys to get, or KEY=VALUE to set."),
    ] = None,
    run: cli.Run = cli.DEFAULT_RUN,
    redis: cli.Redis = cli.DEFAULT_REDIS,
    json: cli.Json = False,
    config_file: cli.Config = None,
    debug: cli.Debug = False,
) -> int:
    """Show or change what the run is made with. A change reaches the very next request.

    Values are JSON, or plain text where they are none. Pinned keys can't be changed.
    """
    if action not in ("get", "set") or (action == "set" and not what):
        raise errors.UsageError("say get [KEY...] or set KEY=VALUE... (see regen-config --help)")
    opened = opening.open_run(redis, run, allow_volatile=True)
    if action == "get":
        _show(opened, what or [], json=json)
        return 0
    changes = _changes(opened.config, what or [])
    after = config.change(opened.client, opened.queue, changes, who=_who())
    print(f"run {run}: configuration version {after.version}")  # noqa: T201
    return 0


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


def _changes(now: config.Config, words: list[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise errors.UsageError(f"{word!r} is no KEY=VALUE")
        outer, dot, inner = name.partition(".")
        if dot:  # one entry of an object
            base = changes.get(outer, now[outer] or {})
            if not isinstance(base, dict):
                raise errors.UsageError(f"{outer} has no entries; set it as {outer}=VALUE")
            changes[outer] = base | {inner: _value(text)}
        elif outer == "destination" and text:
            changes[outer] = _destination(text, endpoint_url=now["endpoint_url"])
        else:
            changes[outer] = _value(text)
    return changes


def _destination(where: str, *, endpoint_url: str | None) -> str:
    """As regen-produce stores it: absolute, and of a kind that exists."""
    try:
        return open_objects(where, endpoint_url=endpoint_url).url
    except errors.DestinationRefusedError:  # the credentials are the sink's, not needed here
        return where


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _show(opened: opening.OpenRun, names: list[str], *, json: bool) -> None:
    for name in names:
        if name not in config.KEYS:
            known = ", ".join(config.KEYS)
            raise errors.UsageError(f"no configuration key {name!r}; there are: {known}")
    chosen = {n: opened.config[n] for n in config.KEYS if not names or n in names}
    history = [
        line
        for line in config.history(opened.client, opened.config.run)
        if not names or line["key"] in names
    ]
    if json:
        tree = {"version": opened.config.version, "values": chosen, "history": history}
        sys.stdout.buffer.write(orjson.dumps(tree, option=orjson.OPT_INDENT_2) + b"\n")
        return
    for name, value in chosen.items():
        pinned = "  (pinned)" if config.KEYS[name].pinned else ""
        print(f"{name:22} {orjson.dumps(value).decode()}{pinned}")  # noqa: T201
    for line in history:
        was = line.get("was", "unset")
        change = f"{line['key']}: {was} → {line['value']}"
        print(f"  {iso_utc(line['at'])}  {change}  ({line['who']})")  # noqa: T201


def main() -> None:
    cli.run_command(configure, name="regen-config", examples=EXAMPLES)
