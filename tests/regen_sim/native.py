"""``/generate``: what it refuses, and its body."""

from typing import Any, Final

from regen_sim import meta, options, output, refusals, response, sampling, work
from regen_sim import vocabulary as v

_FIELDS: Final = (
    "max_new_tokens",
    "stop",
    "stop_token_ids",
    "stop_regex",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "min_new_tokens",
    "n",
    "json_schema",
    "regex",
    "ebnf",
    "structural_tag",
    "ignore_eos",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "no_stop_trim",
    "stream_interval",
    "logit_bias",
    "sampling_seed",
    "custom_params",
    "beam_width",
    "watermark",
    "choice",
)


def refuse(
    body: dict[str, Any], endpoint: refusals.Endpoint, *, new: bool
) -> response.Response | None:
    """The refusal of one request (lists of prompts are not imitated), or None."""
    rid = body.get("rid")
    if rid is not None and not isinstance(rid, str | list):
        kinds = {"str": "string", "list[str]": "list"}
        problems = [
            {
                "type": f"{kind}_type",
                "loc": ("body", "rid", name),
                "msg": f"Input should be a valid {kind}",
                "input": rid,
            }
            for name, kind in kinds.items()
        ]
        return refusals.invalid(problems, endpoint)
    if (message := _broken_rule(body)) is not None:
        return refusals.generate_error(message)
    values = body.get("sampling_params") or {}
    if unknown := [name for name in values if name not in _FIELDS]:
        return _unknown_field(unknown[0], new=new)
    message = sampling.refuse(values, new=new)
    return None if message is None else refusals.generate_error(message)


def kills(body: dict[str, Any], *, new: bool) -> bool:
    """Would this request have ended the real server's process?"""
    ids = body.get("input_ids")
    outside = isinstance(ids, list) and any(
        isinstance(token, int) and token >= v.VOCABULARY_SIZE for token in ids
    )
    return (new and body.get("text") == "") or (outside and body.get("text") is None)


def body(item: work.Work, made: output.Output, settings: options.Options) -> dict[str, Any]:
    """The body of a 200."""
    return {
        "text": output.text_of(made, item.body),
        "output_ids": made.ids,
        "meta_info": meta.meta_info(item, made, settings),
    }


def _broken_rule(body: dict[str, Any]) -> str | None:
    text, ids = body.get("text"), body.get("input_ids")
    if text is None and ids is None and body.get("input_embeds") is None:
        return "Either text, input_ids or input_embeds should be provided."
    if text == "" or (isinstance(text, list) and "" in text):
        return "texts cannot be empty and tokenizer must be initialized"
    if text is None and ids == []:
        return "input_ids cannot be empty."
    if isinstance(text, list) or (ids and isinstance(ids[0], list)):
        return "regen_sim takes one prompt at a time."
    return None


def _unknown_field(name: str, *, new: bool) -> response.Response:
    if not new:
        text = b"Internal Server Error"
        return response.Response(500, text, "text/plain; charset=utf-8")
    known = ", ".join(f"`{field}`" for field in _FIELDS)
    return response.json(400, {"error": f"unknown field `{name}`, expected one of {known}"})
