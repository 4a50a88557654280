"""``python -m regen_sim``: see ``--help`` and README.md."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from regen_sim import options, server


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT and the last answer."""
    settings = options.parse(argv)

    async def serve() -> None:
        await server.Server(settings).run(lambda port: _tell(settings, port))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
    return 0


def _tell(settings: options.Options, port: int) -> None:
    if settings.port_file is not None:
        _write(settings.port_file, port)
    print(f"regen_sim listening on http://{settings.host}:{port}", flush=True)


def _write(path: Path, port: int) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(f"{port}\n")
    part.replace(path)  # whoever waits for it never reads half of it


if __name__ == "__main__":
    sys.exit(main())
