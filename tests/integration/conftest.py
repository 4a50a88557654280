from collections.abc import Iterator

import pytest
import redis

from servers.valkey import Valkey


@pytest.fixture(scope="session")
def server() -> Iterator[Valkey]:
    with Valkey() as found:
        yield found


@pytest.fixture
def client(server: Valkey) -> Iterator[redis.Redis]:
    found = server.client()
    found.flushall()
    yield found
    found.close()
