"""Sampling values: what of them SGLang refuses, for chat and for ``/generate``."""

from typing import Any


def refuse(body: dict[str, Any], *, new: bool) -> str | None:
    """What is wrong with the sampling values, in SGLang's words, or None."""
    temperature = body.get("temperature")
    if temperature is not None and temperature < 0:
        what = "a non-negative finite number" if new else "non-negative"
        return f"temperature must be {what}, got {temperature}."
    for name, low, high, brackets in (
        ("top_p", 0, 1, "("),
        ("min_p", 0, 1, "["),
        ("presence_penalty", -2, 2, "["),
        ("frequency_penalty", -2, 2, "["),
    ):
        value = body.get(name)
        if value is None:
            continue
        if not low <= value <= high or (value == 0 and brackets == "("):
            return f"{name} must be in {brackets}{low}, {high}], got {value}."
    return _bad_lengths(body) or _bad_bias(body.get("logit_bias"))


def _bad_lengths(body: dict[str, Any]) -> str | None:
    wanted = tokens_max(body)
    if wanted is not None and wanted < 0:
        return f"max_new_tokens must be at least 0, got {wanted}."
    least = body.get("min_tokens") or 0
    if wanted is not None and least > wanted:
        return f"min_new_tokens must be in [0, max_new_tokens({wanted})], got {least}."
    return None


def _bad_bias(bias: Any) -> str | None:
    for key in bias or ():
        if not key.isdigit():
            return f"invalid literal for int() with base 10: {key!r}"
        if int(key) >= 151936:
            return f"logit_bias must has keys in [0, 151935], got {key}."
    return None


def tokens_max(body: dict[str, Any]) -> int | None:
    """The cap on the answer that the request names; the newer field wins."""
    wanted = body.get("max_completion_tokens")
    return body.get("max_tokens") if wanted is None else wanted
