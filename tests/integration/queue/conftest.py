import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from servers.valkey import Valkey

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def model_client() -> Iterator[redis.Redis]:
    """A Valkey for the model: without AOF, since losses are played by restoring snapshots."""
    with Valkey(aof=False) as server:
        client = server.client()
        yield client
        client.close()
