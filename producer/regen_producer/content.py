"""The text of a message, verbatim. Whatever is not text is refused, never printed as text."""

from typing import Any, Final

from regen_producer import conversation, rejection

KEYS: Final = ("content", "value", "text")
TEXT_TYPES: Final = ("text", "input_text")
MEDIA: Final = frozenset(("image", "images", "video", "videos", "audio", "audios"))
"""Columns of a row, and keys of a message, that hold what a text model can't be shown."""

_MEDIA_WORDS: Final = ("image", "video", "audio")
_FILE_TYPES: Final = ("file", "input_file", "document")


def text_of(turn: conversation.Turn) -> str | None:
    """The turn's text; None where every place for it is null or missing.

    Raises :class:`rejection.RejectedRowError` (``bad_content_type``, ``multimodal_unsupported``,
    ``bad_message`` where two keys hold two different texts).
    """
    refuse_media(turn.message, f"a {turn.role} turn")
    values = [value for key in KEYS if (value := turn.message.get(key)) is not None]
    if len(values) == 1:
        return _text(values[0], turn.role)
    texts = [_text(value, turn.role) for value in values]
    written = {text for text in texts if text.strip()}
    if len(written) > 1:
        raise rejection.RejectedRowError(
            rejection.BAD_MESSAGE, f"a {turn.role} turn has two different texts"
        )
    return next(iter(written), next(iter(texts), None))


def refuse_media(holder: dict[str, Any], what: str) -> None:
    """Reject a row or message that carries images, sound or film."""
    if MEDIA.isdisjoint(holder):
        return
    for name in sorted(MEDIA):
        if holder.get(name):
            raise rejection.RejectedRowError(rejection.MULTIMODAL_UNSUPPORTED, f"{what} has {name}")


def _text(value: Any, role: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_part(part, role) for part in value)
    if isinstance(value, dict) and value.get("type") in TEXT_TYPES:
        return _part(value, role)
    raise rejection.RejectedRowError(
        rejection.BAD_CONTENT_TYPE, f"a {role} turn holds {conversation.type_name(value)}"
    )


def _part(part: Any, role: str) -> str:
    """One of the parts of which a content may consist. Null ones are padding."""
    if part is None:
        return ""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        name = conversation.type_name(part)
        raise rejection.RejectedRowError(rejection.BAD_CONTENT_TYPE, f"a {role} part is {name}")
    _refuse_media_part(part, role)
    kind = part.get("type")
    text = next((part[key] for key in ("text", *KEYS) if part.get(key) is not None), None)
    if kind in TEXT_TYPES and text is None:
        return ""
    if kind not in (None, *TEXT_TYPES) or not isinstance(text, str):
        name = kind if isinstance(kind, str) else conversation.type_name(kind)
        raise rejection.RejectedRowError(
            rejection.BAD_CONTENT_TYPE, f"a {role} part is of type {name}, or has no text"
        )
    return text


def _refuse_media_part(part: dict[str, Any], role: str) -> None:
    kind = part.get("type")
    named = [kind] if isinstance(kind, str) else [key for key, item in part.items() if item]
    for name in named:
        if kind in _FILE_TYPES or any(word in name for word in _MEDIA_WORDS):
            raise rejection.RejectedRowError(
                rejection.MULTIMODAL_UNSUPPORTED, f"a {role} part is {name}"
            )
