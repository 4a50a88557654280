"""Error responses, word for word as recorded."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from regen_sim import response

BAD_SCHEMA: Final = (
    "Tool {place} function has invalid 'parameters' schema: {value!r} is not valid under any of the"
    " given schemas\n\nFailed validating 'anyOf' in metaschema['allOf'][3]['properties']['type']:\n"
    "    {{'anyOf': [{{'$ref': '#/$defs/simpleTypes'}},\n"
    "               {{'type': 'array',\n"
    "                'items': {{'$ref': '#/$defs/simpleTypes'}},\n"
    "                'minItems': 1,\n"
    "                'uniqueItems': True}}]}}\n\nOn schema['type']:\n    {value!r}"
)
SYSTEM_FIRST: Final = "System message must be at the beginning."


class Endpoint(NamedTuple):
    """Where a validation error says it was found."""

    path: str
    function: str
    line: int


def chat_endpoint(*, new: bool) -> Endpoint:
    return Endpoint("/v1/chat/completions", "openai_v1_chat_completions", 1870 if new else 1490)


def generate_endpoint(*, new: bool) -> Endpoint:
    return Endpoint("/generate", "generate_request", 928 if new else 701)


def bad_request(message: str, kind: str = "BadRequestError") -> response.Response:
    return _openai(400, message, kind)


def invalid(problems: Sequence[Mapping[str, Any]], endpoint: Endpoint) -> response.Response:
    """What FastAPI's validation finds, one mapping per problem."""
    plural = "s" if len(problems) > 1 else ""
    listed = "\n".join(f"  {dict(problem)}" for problem in problems)
    message = (
        f"{len(problems)} validation error{plural}:\n{listed}\n\n"
        f'  File "<SITE>/sglang/srt/entrypoints/http_server.py", line {endpoint.line}, '
        f"in {endpoint.function}\n    POST {endpoint.path} {[dict(p) for p in problems]}"
    )
    return bad_request(message, "Bad Request")


def not_json(content_type_problem: Mapping[str, Any]) -> response.Response:
    problem = dict(content_type_problem)
    return bad_request(f"1 validation error:\n  {problem} {[problem]}", "Bad Request")


def generate_error(message: str) -> response.Response:
    """A 400 of ``/generate``."""
    return response.json(400, {"error": {"message": message}})


def internal(message: str) -> response.Response:
    return _openai(500, f"Internal server error: {message}", "InternalServerError")


def queue_full() -> response.Response:
    return _openai(503, "The request queue is full.", "503")


def unknown_model(name: str) -> response.Response:
    return _openai(404, f"The model `{name}` does not exist.", "NotFoundError", param="model")


def rate_limited(retry_after: str | None) -> response.Response:
    headers = () if retry_after is None else (("retry-after", retry_after),)
    answer = _openai(429, "Rate limit reached. Please try again later.", "RateLimitError")
    return answer._replace(headers=headers)


def unauthorized() -> response.Response:
    return response.json(401, {"error": "Unauthorized"})


def forbidden() -> response.Response:
    return response.json(403, {"error": "Forbidden"})


def not_found() -> response.Response:
    return response.json(404, {"detail": "Not Found"})


def method_not_allowed(allowed: str) -> response.Response:
    answer = response.json(405, {"detail": "Method Not Allowed"})
    return answer._replace(headers=(("allow", allowed),))


def proxy_html(status: int) -> response.Response:
    page = (
        f"<html>\r\n<head><title>{status} Bad Gateway</title></head>\r\n<body>\r\n"
        f"<center><h1>{status} Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n"
        "</body>\r\n</html>\r\n"
    )
    return response.Response(status, page.encode(), "text/html")


def too_long(tokens: int, context: int) -> str:
    return (
        f"The input ({tokens} tokens) is longer than the model's context length ({context} tokens)."
    )


def too_many_wanted(tokens: int, wanted: int, context: int) -> str:
    return (
        f"Requested token count exceeds the model's maximum context length of {context} tokens."
        f" You requested a total of {tokens + wanted} tokens: {tokens} tokens from the input"
        f" messages and {wanted} tokens for the completion. Please reduce the number of tokens in"
        " the input messages or the completion to fit within the limit."
    )


def llama(status: int, message: str, kind: str, **more: Any) -> response.Response:
    """An error of llama.cpp's server."""
    error = {"code": status, "message": message, "type": kind, **more}
    return response.json(status, {"error": error})


def _openai(status: int, message: str, kind: str, *, param: str | None = None) -> response.Response:
    body = {"object": "error", "message": message, "type": kind, "param": param, "code": status}
    return response.json(status, body)
