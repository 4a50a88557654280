"""How an engine is named on a command line: its kind and its URL."""

from typing import Final
from urllib.parse import urlsplit

from regen_common import errors

KINDS: Final = ("sglang", "openai", "auto")


def check_kind(kind: str) -> None:
    """Raises :class:`regen_common.errors.UsageError` for what is no kind."""
    if kind not in KINDS:
        raise errors.UsageError(f"--engine-kind {kind!r}: it is {', '.join(KINDS)}")


def base_of(url: str) -> str:
    """Scheme, host, port and prefix; an ending ``/v1`` is the API's, not the server's.

    Raises :class:`regen_common.errors.UsageError` for what can't be a server's URL.
    """
    shown = "" if "@" in url else f" {url!r}"  # there may be a password before it
    wrong = errors.UsageError(
        f"--engine{shown}: it is like http://127.0.0.1:30000 (a key goes into --api-key)"
    )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is none raises
    except ValueError as error:
        raise wrong from error
    odd = parts.username is not None or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or not host or odd or not is_plain(url):
        raise wrong
    return url.rstrip("/").removesuffix("/v1")


def is_plain(text: str) -> bool:
    """Can it stand in a header as it is?"""
    return text.isascii() and text.isprintable() and " " not in text
