"""The one module that opens Redis: URL, clients, durability check, and errors in our words."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import redis
import redis.asyncio
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.retry import Retry

from regen_common import errors, log

DEFAULT_URL: Final = "redis://127.0.0.1:6379/0"
VERSION_MIN: Final = (7, 0)
SOCKET_TIMEOUT_S: Final = 30.0
CONNECT_TIMEOUT_S: Final = 5.0
RETRIES: Final = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where Redis is. ``shown`` is safe to print."""

    options: dict[str, Any]
    shown: str


def parse_url(url: str) -> Address:
    """``redis://[user[:password]@]host[:port][/db]``, ``rediss://`` or ``unix://[..@]path[?db=N]``.

    The last ``@`` ends the password, so one with ``@ / : #`` in it works unescaped; a ``%xx`` in it
    is taken as an escape.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("redis", "rediss", "unix"):
        raise errors.UsageError("--redis: a URL begins with redis://, rediss:// or unix://")
    userinfo, at, place = rest.rpartition("@")
    options: dict[str, Any] = {}
    if at:
        user, colon, password = userinfo.partition(":")
        options["username"] = unquote(user) or None
        options["password"] = unquote(password) if colon else None
        log.add_secret(options["password"])
    place, _, query = place.partition("?")
    db = dict(parse_qsl(query)).get("db")
    if scheme == "unix":
        options["unix_socket_path"] = place
    else:
        host, _, path_db = place.partition("/")
        options |= _host_and_port(host)
        db = db or path_db
    if db:
        if not db.isdigit():
            raise errors.UsageError(f"--redis: {db!r} is no database number")
        options["db"] = int(db)
    if scheme == "rediss":
        options["ssl"] = True
    return Address(options=options, shown=f"{scheme}://{'***@' if at else ''}{place}")


def _host_and_port(text: str) -> dict[str, Any]:
    if text.startswith("["):  # IPv6
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if port and not port.isdigit():
        raise errors.UsageError("--redis: what stands behind the host's colon is no port number")
    return {"host": host or "127.0.0.1", "port": int(port or 6379)}


def _client_options(address: Address, *, repeat: bool) -> dict[str, Any]:
    backoff = ExponentialWithJitterBackoff(base=0.05, cap=1.0) if repeat else NoBackoff()
    return address.options | {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "health_check_interval": 30,
        "backoff": backoff,
        "retries": RETRIES if repeat else 0,
    }


def shown(client: redis.Redis) -> str:
    """The server's address, without credentials."""
    options = client.connection_pool.connection_kwargs
    if path := options.get("path"):
        return f"unix://{path}"
    return f"{options.get('host')}:{options.get('port')}"


def connect(url: str) -> redis.Redis:
    """A blocking client. Connecting happens at the first command."""
    options = _client_options(parse_url(url), repeat=True)
    retry = Retry(options.pop("backoff"), options.pop("retries"))
    return redis.Redis(**options, retry=retry)


def connect_once(url: str) -> redis.Redis:
    """A blocking client that gives up at the first error: for asking whether a server is there."""
    options = _client_options(parse_url(url), repeat=False)
    retry = Retry(options.pop("backoff"), options.pop("retries"))
    return redis.Redis(**options, retry=retry)


def connect_async(url: str, *, repeat: bool = True) -> redis.asyncio.Redis:
    """An asyncio client; without ``repeat`` a command whose reply is lost is not sent again."""
    options = _client_options(parse_url(url), repeat=repeat)
    retry = redis.asyncio.retry.Retry(options.pop("backoff"), options.pop("retries"))
    return redis.asyncio.Redis(**options, retry=retry)


@contextlib.contextmanager
def mapped_errors() -> Iterator[None]:
    """Raise :mod:`regen_common.errors` for redis-py's exceptions, by type."""
    try:
        yield
    except redis.AuthenticationError as cause:
        raise errors.UsageError(
            "Redis refuses the password; give the right one in --redis or REGEN_REDIS_URL"
        ) from cause
    except redis.exceptions.AuthorizationError as cause:
        raise errors.UsageError("this Redis user lacks a permission that Regen needs") from cause
    except redis.OutOfMemoryError as cause:
        raise errors.RedisFullError(
            "Redis is full (maxmemory); Regen goes on as the sink drains it, or raise maxmemory"
        ) from cause
    except redis.ReadOnlyError as cause:
        raise errors.RedisReadOnlyError(
            "Redis is read-only (a replica?); point --redis at the primary"
        ) from cause
    except (redis.ConnectionError, redis.TimeoutError) as cause:
        raise errors.RedisUnavailableError(
            f"Redis can't be reached: {log.scrub(str(cause))}; is --redis right and is it running?"
        ) from cause
    except redis.ResponseError as cause:
        if str(cause).startswith("MISCONF"):
            raise errors.RedisReadOnlyError(
                "Redis refuses writes because it can't save to disk; see its log and free space"
            ) from cause
        if str(cause).startswith("NOAUTH"):
            raise errors.UsageError(
                "Redis wants a password; give one in --redis or REGEN_REDIS_URL"
            ) from cause
        if str(cause).startswith("READONLY"):
            raise errors.RedisReadOnlyError(
                "Redis is read-only (a replica?); point --redis at the primary"
            ) from cause
        raise errors.RedisError(f"Redis: {log.scrub(str(cause))}") from cause


def check_server(client: redis.Redis, *, allow_volatile: bool) -> None:
    """Refuse a server that is not there, too old, evicts keys, or keeps nothing on disk.

    Raises :class:`regen_common.errors.UsageError` with what mends it: at a command's start an
    address where no Redis answers is a wrong address.
    """
    try:
        with mapped_errors():
            info: dict[str, Any] = client.info()
    except errors.RedisUnavailableError as cause:
        raise errors.UsageError(
            f"no Redis answers at {shown(client)}; start it, or name the right one with --redis "
            "or REGEN_REDIS_URL"
        ) from cause
    version = str(info.get("valkey_version") or info["redis_version"])
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < VERSION_MIN:
        raise errors.UsageError(f"Redis {version} is too old; Regen needs Redis >= 7 or Valkey")
    if allow_volatile:
        return
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise errors.UsageError(
            f"Redis evicts keys (maxmemory-policy {policy}) and would lose prompts; mend it with "
            "`redis-cli config set maxmemory-policy noeviction`, or --allow-volatile-redis for play"
        )
    if not info.get("aof_enabled"):
        raise errors.UsageError(
            "Redis has no append-only file and would lose the run when it dies; mend it with "
            "`redis-cli config set appendonly yes`, or --allow-volatile-redis for play"
        )


def text(value: bytes | str) -> str:
    """A reply as text, whichever way the client decodes."""
    return value.decode() if isinstance(value, bytes) else value


def aof_write_ok(client: redis.Redis) -> bool:
    """Did Redis' last write to its append-only file succeed?"""
    with mapped_errors():
        info: dict[str, Any] = client.info("persistence")
    return bool(info.get("aof_last_write_status", "ok") == "ok")


def time_s(client: redis.Redis) -> float:
    """Redis' own clock, in seconds since the Unix epoch."""
    with mapped_errors():
        seconds, micros = client.time()
    return float(seconds) + float(micros) / 1e6
