from collections.abc import Iterator

import pytest
import redis

from servers.valkey import Valkey


@pytest.fixture(scope="session")
def model_client() -> Iterator[redis.Redis]:
    """A Valkey for the model: without AOF, since losses are played by restoring snapshots."""
    with Valkey(aof=False) as server:
        client = server.client()
        yield client
        client.close()
