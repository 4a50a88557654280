"""What every command shares: options, configuration file, error lines and exit codes.

Flags beat the environment, which beats the file of ``--config``, which beats the run's stored
configuration (options that have one default to ``None`` here). Exit codes: 0 done, 1 the command's
own work failed or is incomplete, 2 wrong usage or configuration.
"""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from regen_common import errors, log, redisio

FLAGS: Final = frozenset(
    """allow-model-change allow-truncated allow-volatile-redis api-key batch-bytes
    batch-records batch-seconds burst chat-template-kwargs class compress concurrency
    config debug dedupe demo dry-run dump endpoint-url engine engine-kind every extra-body
    failed gpu grace host json lease limit max-backlog max-prompt-chars max-queued
    max-tokens min-p out presence-penalty redis repetition-penalty resume retry-failed run
    seed stall store temperature thinking to top-k top-p turns watch""".split()  # noqa: SIM905 - as text it can be read
)
"""All commands' flags: a file of ``--config`` may serve several commands, a typo serves none."""


def _load_file(context: typer.Context, path: Path | None) -> Path | None:
    """Make the file's values the defaults of this command's options."""
    if path is None:
        return None
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as cause:
        raise errors.UsageError(f"--config: no file {path}") from cause
    except (OSError, ValueError) as cause:
        raise errors.UsageError(f"--config: {path}: {cause}") from cause
    unknown = sorted(name for name in values if name.replace("_", "-") not in FLAGS)
    if unknown:
        raise errors.UsageError(f"--config: {path}: no command has a flag --{unknown[0]}")
    mine = {flag: parameter.name for parameter in context.command.params for flag in parameter.opts}
    flags = {f"--{name.replace('_', '-')}": value for name, value in values.items()}
    context.default_map = {str(mine[f]): value for f, value in flags.items() if f in mine}
    return path


Run = Annotated[
    str,
    typer.Option("--run", envvar="REGEN_RUN", help="The run's name (a-z 0-9 _ -, 40 at most)."),
]
Redis = Annotated[
    str,
    typer.Option(
        "--redis",
        envvar=["REGEN_REDIS_URL", "RQ_REDIS_URL"],
        show_default=redisio.DEFAULT_URL,
        help="Redis >= 7 or Valkey: redis://[:PASSWORD@]HOST[:PORT][/DB], rediss://, unix://PATH.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=_load_file,
        help="A TOML file whose keys are the flags' names.",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Where the prompt store is.", show_default="the run's"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
AllowVolatile = Annotated[
    bool,
    typer.Option(
        "--allow-volatile-redis",
        help="For play: accept a Redis that keeps nothing on disk or evicts keys.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug events.")]

DEFAULT_RUN: Final = "regen"
DEFAULT_REDIS: Final = redisio.DEFAULT_URL

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>|[kmgt](?:i?b)?|b)", re.IGNORECASE)
_POWERS: Final = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str, *, flag: str) -> int:
    """Bytes of ``64MiB``, ``1.5GB``, ``4096``. Units with and without ``i`` are powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise errors.UsageError(f"{flag}: {text!r} is no size; write 64MiB, 1GiB or a number")
    power = _POWERS[found["unit"][:1].lower()]
    return int(float(found["number"]) * 1024**power)


def run_command(command: Callable[..., Any], *, name: str, examples: str) -> None:
    """Turn a function into the console command ``name``, run it, and end the process."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    settings = {
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "REGEN",
        "max_content_width": 100,
    }
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    epilog = f"\b\nExamples:\n{lines}"
    app.command(name=name, epilog=epilog, context_settings=settings)(command)
    sys.exit(_run(app, name))


def _run(app: typer.Typer, name: str) -> int:
    debug = "--debug" in sys.argv[1:]
    log.setup(debug=debug)
    try:
        code = app(prog_name=name, standalone_mode=False)
    except errors.RegenError as error:
        if debug:
            raise
        kind = "" if error.exit_code == errors.EXIT_INTERRUPTED else "error: "
        say(name, kind + str(error))
        return error.exit_code
    except typer.TyperException as error:
        say(name, f"error: {_message(error)} (see {name} --help)")
        return 2
    except (KeyboardInterrupt, typer.Abort):
        say(name, "interrupted; the same command goes on where it stopped")
        return errors.EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0


def _message(error: typer.TyperException) -> str:
    format_message = getattr(error, "format_message", None)
    return str(format_message()) if format_message else str(error)


def say(name: str, text: str) -> None:
    """One line on stderr, without secrets."""
    line = " ".join(log.scrub(text).split())
    print(f"{name}: {line}", file=sys.stderr)  # noqa: T201
