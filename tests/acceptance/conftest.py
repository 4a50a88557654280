from collections.abc import Iterator
from pathlib import Path

import pytest

import acceptance_kit as kit
from servers.valkey import Valkey


@pytest.fixture
def redis() -> Iterator[Valkey]:
    with Valkey() as server:
        yield server


@pytest.fixture
def node(tmp_path: Path, redis: Valkey) -> Iterator[kit.Node]:
    with kit.node(tmp_path, redis.url) as found:
        yield found
