"""The run's configuration: what may be set, what is pinned, how it is read and changed.

It stands in the hash ``{p}:config``: one field ``key:NAME`` of JSON per key, ``version`` counting
the changes, ``history`` holding them. Consumers re-read it when a claim shows a newer version.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
import redis

from regen_common import errors, redisio
from regen_common.queue import executor, transitions
from regen_common.records import labels
from regen_common.run import keys

MAX_TOKENS_DEFAULT: Final = 8192
MAX_QUEUED_DEFAULT: Final = 1_000_000
MAX_BACKLOG_DEFAULT: Final = 1 << 30
HALT_ON_DEFAULT: Final[dict[str, Any]] = {
    "labels": ["empty", "trivial"],
    "rate": 0.2,
    "window": 500,
    "min_answers": 200,
}
TRIES_MAX: Final = 20

SAMPLING_RANGES: Final = {
    "temperature": (0, 100),
    "top_p": (0, 1),
    "top_k": (-1, 1 << 30),
    "min_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "repetition_penalty": (0, 2),
}
"""Lowest and highest value: what SGLang takes, save that it knows no highest temperature."""

SAMPLING_NAMES: Final = tuple(SAMPLING_RANGES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One configuration key. ``check`` returns the value to store, or raises ``ValueError``."""

    name: str
    help: str
    check: Callable[[Any], Any]
    pinned: bool = False


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("wants a text")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("wants a JSON object")  # noqa: TRY004 - the caller maps ValueError
    return value


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("wants a whole number above 0")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("wants a number")  # noqa: TRY004
    return value


def _sampling(value: Any) -> dict[str, Any]:
    for name, number in _mapping(value).items():
        if name not in SAMPLING_NAMES:
            raise ValueError(f"knows {', '.join(SAMPLING_NAMES)}; not {name!r}")
        low, high = SAMPLING_RANGES[name]
        if not low <= _number(number) <= high:
            raise ValueError(f"wants {name} between {low} and {high}")
    return dict(value)


def _thinking(value: Any) -> str:
    as_word = {True: "on", False: "off"}.get(value, value)
    if as_word not in ("on", "off", "auto"):
        raise ValueError("is on, off or auto (as the model's template has it)")
    return str(as_word)


def _halt_on(value: Any) -> dict[str, Any] | None:
    if value in (None, "off", False):
        return None
    rule = HALT_ON_DEFAULT | _mapping(value)
    if unknown := set(rule) - set(HALT_ON_DEFAULT):
        raise ValueError(f"knows {', '.join(HALT_ON_DEFAULT)}; not {', '.join(sorted(unknown))}")
    if not rule["labels"] or not set(rule["labels"]) <= set(labels.LABELS):
        raise ValueError(f"labels are some of {', '.join(labels.LABELS)}")
    if not 0 < _number(rule["rate"]) <= 1:
        raise ValueError("rate is above 0 and at most 1")
    if not _positive(rule["min_answers"]) <= _positive(rule["window"]) <= 10_000:  # noqa: PLR2004
        raise ValueError("min_answers <= window <= 10000")
    return rule


def _weights(value: Any) -> dict[str, float] | None:
    if value in (None, "auto"):
        return None
    weights = {name: _number(weight) for name, weight in _mapping(value).items()}
    if set(weights) != set(keys.CATEGORIES) or min(weights.values()) <= 0:
        raise ValueError('is auto, or above 0 for both: {"tools": 1, "chat": 3}')
    return weights


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


_KEYS: Final = (
    Key(name="input_fingerprint", help="what was read", check=_text, pinned=True),
    Key(name="store", help="where the prompt store is", check=_text, pinned=True),
    Key(name="turns", help="strip, last or all", check=_text, pinned=True),
    Key(name="model", help="what the first preflight found", check=_mapping, pinned=True),
    Key(name="destination", help="s3://bucket/prefix or a folder", check=_optional(_text)),
    Key(name="endpoint_url", help="the S3 service, if not AWS", check=_optional(_text)),
    Key(name="max_tokens", help="cap of an answer, in tokens", check=_positive),
    Key(name="sampling", help="what overrides the model's preset", check=_sampling),
    Key(name="thinking", help="on, off or auto", check=_thinking),
    Key(name="seed", help="base of the per-prompt seeds", check=_optional(_number)),
    Key(name="extra_body", help="merged into each request", check=_mapping),
    Key(name="chat_template_kwargs", help="for the chat template", check=_mapping),
    Key(name="halt_on", help="when bad answers stop the run; off", check=_halt_on),
    Key(name="weights", help="how the queues share the slots; auto", check=_weights),
    Key(name="max_queued", help="jobs in Redis at most", check=_positive),
    Key(name="max_backlog", help="bytes in the results stream", check=_positive),
    Key(name="limit", help="input rows at most", check=_optional(_positive)),
)
KEYS: Final[Mapping[str, Key]] = {key.name: key for key in _KEYS}

DEFAULTS: Final[dict[str, Any]] = {
    "turns": "strip",
    "destination": None,
    "endpoint_url": None,
    "max_tokens": MAX_TOKENS_DEFAULT,
    "sampling": {},
    "thinking": "auto",
    "seed": None,
    "extra_body": {},
    "chat_template_kwargs": {},
    "halt_on": HALT_ON_DEFAULT,
    "weights": None,
    "max_queued": MAX_QUEUED_DEFAULT,
    "max_backlog": MAX_BACKLOG_DEFAULT,
    "limit": None,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A run's configuration as it was at ``version``. Counts are in prompts."""

    run: str
    version: int
    epoch: str
    input: int
    rejected: int
    plan: dict[str, int]
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    @property
    def max_tokens(self) -> int:
        return int(self.values["max_tokens"])

    @property
    def store(self) -> str:
        return str(self.values["store"])


def checked(name: str, value: Any) -> Any:
    """The value to store for a key.

    Raises :class:`regen_common.errors.UsageError` for an unknown key or a value it can't take.
    """
    key = KEYS.get(name)
    if key is None:
        raise errors.UsageError(f"no configuration key {name!r}; there are: {', '.join(KEYS)}")
    try:
        return key.check(value)
    except ValueError as cause:
        raise errors.UsageError(f"{name} {cause}") from cause


def to_fields(values: Mapping[str, Any]) -> dict[str, str]:
    """Hash fields of a new run: its values over the defaults, checked."""
    merged = {**DEFAULTS, **values}
    return {
        f"key:{name}": orjson.dumps(checked(name, value)).decode() for name, value in merged.items()
    }


def load(client: redis.Redis, run: str) -> Config:
    """Read a run's configuration.

    Raises :class:`regen_common.errors.RunNotFoundError` where there is no such run.
    """
    names = keys.Keys(run=run)
    with redisio.mapped_errors():
        pipe = client.pipeline(transaction=True)
        pipe.get(names.epoch)
        pipe.hgetall(names.config)
        epoch, raw = pipe.execute()
    if epoch is None:
        raise errors.RunNotFoundError(
            f"no run {run!r} in this Redis; regen-produce makes one (is --redis right?)"
        )
    return parse(run, epoch.decode(), raw)


def parse(run: str, epoch: str, raw: Mapping[bytes, bytes]) -> Config:
    """A configuration out of the hash's fields."""
    fields = {name.decode(): value for name, value in raw.items()}
    stored = {
        name.removeprefix("key:"): orjson.loads(value)
        for name, value in fields.items()
        if name.startswith("key:")
    }
    return Config(
        run=run,
        version=int(fields.get("version", b"0")),
        epoch=epoch,
        input=int(fields["input"]),
        rejected=int(fields["rejected"]),
        plan={c: int(fields[f"plan:{c}"]) for c in keys.CATEGORIES},
        values=DEFAULTS | stored,
    )


def history(client: redis.Redis, run: str) -> list[dict[str, Any]]:
    """All changes, oldest first: ``{key, value, was, at, who, version}`` (values are JSON text)."""
    with redisio.mapped_errors():
        raw = client.hget(keys.Keys(run=run).config, "history")
    return list(orjson.loads(raw)) if raw else []


def change(
    client: redis.Redis, queue: executor.Queue, values: Mapping[str, Any], *, who: str
) -> Config:
    """Set keys. Pinned keys may be set once; setting what is set already changes nothing.

    Raises :class:`regen_common.errors.RunMismatchError` for a pinned key with another value.
    """
    wanted = {name: checked(name, value) for name, value in values.items()}
    for _ in range(TRIES_MAX):
        config = load(client, queue.run)
        changes = {n: v for n, v in wanted.items() if config[n] != v or n not in config.values}
        if not changes:
            return config
        for name in changes:
            if KEYS[name].pinned and config[name] is not None:
                raise errors.RunMismatchError(
                    f"{name} is pinned to {_short(config[name])} in run {queue.run!r}; "
                    "another value needs another --run"
                )
        texts = {name: orjson.dumps(value).decode() for name, value in changes.items()}
        state, _version = queue.execute(
            transitions.configure(expected=config.version, values=texts, who=who)
        )
        if state == "ok":
            return load(client, queue.run)
    raise errors.RedisError("the configuration is being changed by others all the time; try again")


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 120 else text[:117] + "..."  # noqa: PLR2004
