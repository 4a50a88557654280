"""Reading a request's JSON the way each version does: 0.5.11 with Python's json, 0.5.23 with
orjson, which differ in what they refuse and in their words for it."""

import json
from typing import Any, NamedTuple

import orjson

from regen_sim import refusals, response


class Parsed(NamedTuple):
    """``body`` where it was a readable object, else the refusal."""

    body: dict[str, Any]
    refusal: response.Response | None


def parse(raw: bytes, content_type: str, endpoint: refusals.Endpoint, *, new: bool) -> Parsed:
    """The body of a POST, or SGLang's refusal of it."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        return Parsed({}, refusals.not_json(_CONTENT_TYPE))
    if not raw.strip():
        missing = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
        return Parsed({}, refusals.invalid([missing], endpoint))
    try:
        return _object(orjson.loads(raw), endpoint)
    except orjson.JSONDecodeError as error:
        return _refused_by_orjson(error, endpoint) if new else _with_json(raw, endpoint)


def _with_json(raw: bytes, endpoint: refusals.Endpoint) -> Parsed:
    """Python's json takes lone surrogates, NaN, and integers of any size."""
    try:
        body = json.loads(raw.decode())
        json.dumps(body, ensure_ascii=False).encode()
        return _object(body, endpoint)
    except UnicodeEncodeError:
        return Parsed({}, _no_text(endpoint))
    except UnicodeDecodeError:
        refusal = response.json(400, {"detail": "There was an error parsing the body"})
        return Parsed({}, refusal)
    except json.JSONDecodeError as error:
        return Parsed({}, refusals.invalid([_json_invalid(error.pos, error.msg)], endpoint))


def _object(body: Any, endpoint: refusals.Endpoint) -> Parsed:
    if isinstance(body, dict):
        return Parsed(body, None)
    message = "Input should be a valid dictionary or object to extract fields from"
    problem = {"type": "model_attributes_type", "loc": ("body",), "msg": message, "input": body}
    return Parsed({}, refusals.invalid([problem], endpoint))


def _no_text(endpoint: refusals.Endpoint) -> response.Response:
    """0.5.11's tokenizer stumbles over half a surrogate pair."""
    if endpoint.path == "/generate":
        return response.Response(500, b"Internal Server Error", "text/plain; charset=utf-8")
    return refusals.internal(
        "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]"
    )


def parse_llama(raw: bytes) -> Parsed:
    """The body of a chat request to llama.cpp's server."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        message = f"[json.exception.parse_error.101] parse error at column {error.pos}: {error.msg}"
        return Parsed({}, refusals.llama(400, message, "invalid_request_error"))
    if not isinstance(body, dict) or "messages" not in body:
        message = "'messages' is required"
        return Parsed({}, refusals.llama(400, message, "invalid_request_error"))
    return Parsed(body, None)


def _refused_by_orjson(error: orjson.JSONDecodeError, endpoint: refusals.Endpoint) -> Parsed:
    return Parsed({}, refusals.invalid([_json_invalid(error.pos, error.msg)], endpoint))


def _json_invalid(position: int, message: str) -> dict[str, Any]:
    return {
        "type": "json_invalid",
        "loc": ("body", position),
        "msg": "JSON decode error",
        "input": {},
        "ctx": {"error": message},
    }


_CONTENT_TYPE = {
    "loc": ["header", "content-type"],
    "msg": "Unsupported Media Type: Only 'application/json' is allowed",
    "type": "value_error",
}
