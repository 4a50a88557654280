"""``make bench``: every figure that docs/benchmarks.md states, measured in one run."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CASES = (
    ("engine_client.py", "40", "20000"),
    ("engine_client.py", "512", "20000"),
    ("produce.py", "50000"),
    ("produce.py", "200000"),
    ("consumer.py", "0", "5000", "40"),
    ("consumer.py", "0.5", "3000", "40"),
    ("consumer.py", "lognormal:2:0.7", "2000", "40"),
    ("consumer.py", "lognormal:4:0.7", "4000", "256"),
)


def main() -> int:
    for script, *arguments in CASES:
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
