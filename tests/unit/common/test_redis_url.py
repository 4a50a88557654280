from typing import Any

import pytest

from regen_common import errors, log, redisio


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("redis://h", {"host": "h", "port": 6379}),
        ("redis://h:1/2", {"host": "h", "port": 1, "db": 2}),
        ("redis://:pw@h:1/2", {"host": "h", "password": "pw", "username": None}),
        ("redis://me:pw@h", {"username": "me", "password": "pw"}),
        ("redis://:p@ss/w:rd#@h:1/2", {"password": "p@ss/w:rd#", "host": "h", "port": 1, "db": 2}),
        ("redis://:p%40ss%2Fw@h", {"password": "p@ss/w"}),
        ("redis://[::1]:7/0", {"host": "::1", "port": 7, "db": 0}),
        ("redis://h:1?db=3", {"port": 1, "db": 3}),
        ("rediss://h", {"host": "h", "ssl": True}),
        ("unix:///run/r.sock?db=1", {"unix_socket_path": "/run/r.sock", "db": 1}),
        ("unix://:pw@/run/r.sock", {"unix_socket_path": "/run/r.sock", "password": "pw"}),
    ],
)
def test_urls(url: str, options: dict[str, Any]) -> None:
    parsed = redisio.parse_url(url)
    assert {name: parsed.options.get(name) for name in options} == options


@pytest.mark.parametrize(
    "url", ["h:1", "http://h", "redis://h:x", "redis://h:1/x", "redis://:p@ss:w@h:port"]
)
def test_what_is_no_url_is_said_without_the_password(url: str) -> None:
    with pytest.raises(errors.UsageError, match="--redis") as caught:
        redisio.parse_url(url)
    assert "p@ss" not in str(caught.value)


def test_a_password_never_shows() -> None:
    parsed = redisio.parse_url("redis://:s3cret/pa@h:1/2")
    assert "s3cret" not in parsed.shown
    assert "s3cret" not in log.scrub("Error connecting with s3cret/pa to redis://:s3cret/pa@h:1")
