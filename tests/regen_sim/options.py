"""The command line of ``python -m regen_sim``."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from regen_sim import faults, latency

VERSIONS: Final = ("0.5.11", "0.5.23", "openai")
RUNNING_MAX: Final = 4096  # what both SGLang versions have unless told otherwise
KEEP_ALIVE_S: Final = 5.0  # uvicorn's


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How this simulation behaves."""

    host: str
    port: int
    port_file: Path | None
    version: str
    model: str
    reasoning_parser: str | None
    tool_call_parser: str | None
    think_open: bool
    strict_template: bool
    context_length: int
    max_running: int
    max_queued: int | None
    api_key: str | None
    metrics: bool
    cache_report: bool
    seed: int
    latency: latency.Latency
    faults: tuple[faults.Fault, ...]
    load_s: float
    startup_s: float
    health_s: float
    keep_alive_s: float
    disconnect_s: float
    sigterm_never_exits: bool
    spec: float | None
    parent_pid: int | None

    @property
    def is_sglang(self) -> bool:
        return self.version != "openai"

    @property
    def is_new(self) -> bool:
        """Answers as 0.5.23 does where the two differ."""
        return self.version == "0.5.23"


def parse(argv: Sequence[str] | None = None) -> Options:
    """Options from the command line; ends the process with 2 on wrong usage."""
    found = vars(_parser().parse_args(argv))
    found["latency"] = found.pop("latency")
    found["faults"] = tuple(found.pop("fault"))
    return Options(**found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="regen_sim", description=__doc__)
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=0, help="0: a free one, printed when ready")
    add("--port-file", type=Path, help="write the port there when ready")
    add("--version", choices=VERSIONS, default="0.5.11")
    add("--model", default="tiny", help="served model name")
    add("--reasoning-parser", metavar="NAME")
    add("--tool-call-parser", metavar="NAME")
    add("--think-open", action="store_true", help="the template opens the thinking (Qwen3.5)")
    add("--strict-template", action="store_true", help="refuse what Qwen3.5's template refuses")
    add("--context-length", type=int, default=40960, metavar="TOKENS")
    add("--max-running", type=int, default=RUNNING_MAX, metavar="N")
    add("--max-queued", type=int, metavar="N", help="without it the queue has no bound")
    add("--api-key")
    add("--enable-metrics", dest="metrics", action="store_true", default=True)
    add("--no-metrics", dest="metrics", action="store_false")
    add("--enable-cache-report", dest="cache_report", action="store_true")
    add("--seed", type=int, default=0, help="other answers to the same prompts")
    add("--latency", type=latency.parse, default=latency.parse("0"), metavar="SPEC")
    add("--fault", type=faults.parse, action="append", default=[], metavar="NAME[=ARGS]")
    add("--load-s", type=float, default=0.0, help="nobody listens so long")
    add("--startup-s", type=float, default=0.0, help="/health is 503 so long")
    add("--health-s", type=float, default=0.0, help="how long /health takes (real: 1 s)")
    add("--keep-alive-s", type=float, default=KEEP_ALIVE_S, help="idle connections are closed")
    add("--disconnect-s", type=float, default=1.0, help="until a lost client's work is aborted")
    add("--sigterm-never-exits", action="store_true")
    add("--spec", type=float, metavar="ACCEPT_LENGTH", help="as with speculative decoding")
    add("--parent-pid", type=int, help="end when this process is no longer the parent")
    return parser
