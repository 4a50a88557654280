"""One structured line per event on stderr: ``time level event key=value ...``.

Event names are constants; values that contain white space are quoted as JSON. Whatever looks like
a credential in a URL, or was registered as a secret, is replaced before it is written.
"""

import logging
import re
import sys
from typing import Any, Final

import orjson

from regen_common.clock import iso_utc

WAITING_EVERY_S: Final = 30.0
_LOGGER = logging.getLogger("regen")
_USERINFO = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<userinfo>\S*)@", re.IGNORECASE)
_secrets: set[str] = set()

SECRET_LENGTH_MIN = 4
"""Shorter strings are not registered: replacing every ``a`` of a line helps nobody."""


def add_secret(value: str | None) -> None:
    """Never let ``value`` appear in a log line or an error of this process again."""
    if value and len(value) >= SECRET_LENGTH_MIN:
        _secrets.add(value)


def scrub(text: str) -> str:
    """``text`` without the passwords of URLs and without the registered secrets."""
    text = _USERINFO.sub(r"\g<scheme>***@", text)
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = iso_utc(record.created)
        fields: dict[str, Any] = getattr(record, "fields", {})
        parts = [moment, record.levelname.lower(), record.getMessage()]
        parts += [f"{name}={_show(value)}" for name, value in fields.items()]
        line = scrub(" ".join(parts))
        if record.exc_info:
            line += "\n" + scrub(self.formatException(record.exc_info))
        return line


class _Seldom(logging.Filter):
    """Lets what is waited for be said again only after WAITING_EVERY_S."""

    def __init__(self) -> None:
        super().__init__()
        self._said_at_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(record, "waiting", False):
            return True
        event = record.getMessage()
        if record.created - self._said_at_s.get(event, 0.0) < WAITING_EVERY_S:
            return False
        self._said_at_s[event] = record.created
        return True


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else str(value)
    plain = text and not any(c.isspace() or c == '"' for c in text)
    return text if plain else orjson.dumps(text).decode()


def setup(*, debug: bool = False) -> None:
    """Send this process's events to stderr; other libraries only from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    handler.addFilter(_Seldom())
    _LOGGER.handlers[:] = [handler]
    _LOGGER.propagate = False
    _LOGGER.setLevel(logging.DEBUG if debug else logging.INFO)


def info(event: str, /, **fields: Any) -> None:
    _LOGGER.info(event, extra={"fields": fields})


def warning(event: str, /, **fields: Any) -> None:
    _LOGGER.warning(event, extra={"fields": fields})


def waiting(event: str, /, **fields: Any) -> None:
    """A warning that comes again and again while something is away: said every 30 s."""
    _LOGGER.warning(event, extra={"fields": fields, "waiting": True})


def error(event: str, /, **fields: Any) -> None:
    _LOGGER.error(event, extra={"fields": fields})


def debug(event: str, /, **fields: Any) -> None:
    _LOGGER.debug(event, extra={"fields": fields})
