"""The list of flags that a ``--config`` file may name is the commands' own."""

import importlib
import tomllib
from pathlib import Path

import typer

from regen_common import cli

ROOT = Path(__file__).parents[2]


def flags_of(entry: str) -> set[str]:
    module, _, _ = entry.partition(":")
    found: set[str] = set()

    def capture(command: object, **_: object) -> None:
        app = typer.Typer(add_completion=False)
        app.command()(command)  # type: ignore[type-var]
        for parameter in typer.main.get_command(app).params:
            found.update(o.removeprefix("--") for o in parameter.opts if o.startswith("--"))

    original = cli.run_command
    try:
        cli.run_command = capture
        importlib.import_module(module).main()
    finally:
        cli.run_command = original
    return found


def test_every_flag_is_known_and_every_known_flag_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    flags = set().union(*(flags_of(entry) for entry in project["scripts"].values()))
    assert flags - {"help"} == set(cli.FLAGS)
