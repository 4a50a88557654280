"""The body of a chat completion request, out of ready JSON. Pure."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from regen_common import errors

RID_LENGTH: Final = 32

OURS: Final = frozenset(
    {
        "messages",
        "model",
        "n",
        "no_stop_trim",
        "rid",
        "separate_reasoning",
        "skip_special_tokens",
        "stream",
        "tools",
    }
)
"""What ``extra_body`` may not touch: the answer could not be read, or would be another's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """What a server takes beyond plain OpenAI.

    ``sampling`` are the names it knows, ours mapped to its own. Others are not sent: OpenAI itself
    refuses unknown fields, and a setting that is silently ignored must not stand in a record.
    """

    raw_text: bool = False  # SGLang's switches for text as the model said it
    reasoning_format: bool = False  # llama.cpp's
    token_ids: bool = False
    sampling: Mapping[str, str] = field(default_factory=dict)


_PLAIN: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_MORE: Final = (*_PLAIN, "top_k", "min_p", "repetition_penalty")

OPENAI: Final = Dialect(sampling={name: name for name in _PLAIN})
SGLANG: Final = Dialect(raw_text=True, sampling={name: name for name in _MORE})
VLLM: Final = Dialect(sampling={name: name for name in _MORE})
LLAMA_CPP: Final = Dialect(
    reasoning_format=True,
    sampling={name: name for name in _MORE} | {"repetition_penalty": "repeat_penalty"},
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One prompt with how to ask it. ``messages`` and ``tools`` are JSON.

    ``sampling`` has what :func:`regen_consumer.engine.sampling.resolve` returned. ``thinking``:
    None leaves it to the chat template.
    """

    model: str
    messages: bytes
    tools: bytes | None
    sampling: Mapping[str, float]
    max_tokens: int
    thinking: bool | None = None
    seed: int | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)


def new_rid() -> str:
    """A fresh request id. All have one length, because aborting matches by prefix."""
    return secrets.token_hex(RID_LENGTH // 2)


def body(question: Question, dialect: Dialect, *, rid: str) -> bytes:
    """The request as JSON; ``extra_body`` is merged last."""
    fields: dict[str, Any] = {
        "model": question.model,
        "messages": orjson.Fragment(question.messages),
        "max_tokens": question.max_tokens,
    }
    for name, value in question.sampling.items():
        if name in dialect.sampling:
            fields[dialect.sampling[name]] = value
    if question.tools is not None:
        fields["tools"] = orjson.Fragment(question.tools)
    if question.seed is not None:
        fields["seed"] = question.seed
    if kwargs := _template_kwargs(question):
        fields["chat_template_kwargs"] = kwargs
    if dialect.raw_text:
        fields["rid"] = rid
        fields["separate_reasoning"] = False
        fields["skip_special_tokens"] = False
        fields["no_stop_trim"] = True
    if dialect.reasoning_format:
        fields["reasoning_format"] = "none"
    if dialect.token_ids:
        fields["return_token_ids"] = True
    fields.update(question.extra_body)
    return orjson.dumps(fields)


def check_extra_body(extra_body: Mapping[str, Any]) -> None:
    """Raises :class:`regen_common.errors.UsageError` for fields that Regen has to set itself."""
    if taken := sorted(OURS & extra_body.keys()):
        raise errors.UsageError(
            f"--extra-body may not set {', '.join(taken)}: Regen sets them, or could not read the "
            "answer; leave them out"
        )


def _template_kwargs(question: Question) -> dict[str, Any]:
    if question.thinking is None:
        return dict(question.template_kwargs)
    return {"enable_thinking": question.thinking, **question.template_kwargs}
