"""Sampling settings: explicit in every request, whoever they come from. Pure.

In order: what the user set, the preset of the model's family, the server's own defaults, neutral.
A family's preset goes before the server's defaults because those may be anybody's.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

NAMES: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
)
"""Set in every request, if the server takes them."""

OPTIONAL: Final = ("frequency_penalty",)
"""Set only where somebody or the server's defaults name it."""

NEUTRAL: Final[Mapping[str, float]] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,  # all tokens
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "repetition_penalty": 1.0,
}
"""The model's own distribution."""

_ALIASES: Final = {"repeat_penalty": "repetition_penalty"}  # llama.cpp's name


def _qwen(
    temperature: float, top_p: float, *, presence: float = 0.0, repetition: float = 1.0
) -> dict[str, float]:
    return {
        "temperature": temperature,
        "top_p": top_p,
        "top_k": 20,
        "min_p": 0.0,
        "presence_penalty": presence,
        "repetition_penalty": repetition,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Models that share a card. ``marks``: parts of a normalised name, any of which tells it.

    ``thinks_by_default``: what its chat template does unless told otherwise.
    """

    name: str
    marks: tuple[str, ...]
    thinking: Mapping[str, float]
    plain: Mapping[str, float]
    thinks_by_default: bool = True


FAMILIES: Final = (
    Family(
        name="Qwen3.6",
        marks=("qwen3.6", "qwen36", "qwen3_6"),
        thinking=_qwen(1.0, 0.95),
        plain=_qwen(0.7, 0.8, presence=1.5),
    ),
    Family(
        name="Qwen3.5",
        marks=("qwen3.5", "qwen35", "qwen3_5"),
        thinking=_qwen(1.0, 0.95, presence=1.5),
        plain=_qwen(0.7, 0.8, presence=1.5),
    ),
    Family(
        name="Qwen3-Coder",
        marks=("qwen3-coder", "qwen3_coder"),
        thinking=_qwen(0.7, 0.8, repetition=1.05),
        plain=_qwen(0.7, 0.8, repetition=1.05),
        thinks_by_default=False,
    ),
    Family(
        name="Qwen3",
        marks=("qwen3",),
        thinking=_qwen(0.6, 0.95),
        plain=_qwen(0.7, 0.8),
    ),
)
"""From the model cards; the first whose mark is in a name wins, so the special before the general.
Another family is one more entry."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """``values`` go into requests and records; ``sources`` say where each came from."""

    values: dict[str, float]
    sources: dict[str, str]


def family_of(names: Iterable[str | None]) -> Family | None:
    """The family that a served name or a path tells, the first name that tells one deciding."""
    for name in names:
        lowered = (name or "").lower().replace(" ", "")
        for family in FAMILIES:
            if any(mark in lowered for mark in family.marks):
                return family
    return None


def resolve(
    family: Family | None,
    *,
    thinking: bool,
    overrides: Mapping[str, float],
    server_defaults: Mapping[str, float],
    takes: Collection[str] = (*NAMES, *OPTIONAL),
) -> Resolved:
    """One value for each name that the server ``takes``."""
    layers: list[tuple[str, Mapping[str, float]]] = [("set", overrides)]
    if family is not None:
        mode = "thinking" if thinking else "without thinking"
        layers.append((f"{family.name} {mode}", family.thinking if thinking else family.plain))
    layers += [("server", server_defaults), ("neutral", NEUTRAL)]
    values, sources = {}, {}
    for name in (*NAMES, *OPTIONAL):
        found = next(((where, layer[name]) for where, layer in layers if name in layer), None)
        if found is not None and name in takes:
            sources[name], values[name] = found
    return Resolved(values=values, sources=sources)


def known(settings: Any) -> dict[str, float]:
    """The settings of ours in a server's or a model's defaults, under our names."""
    if not isinstance(settings, Mapping):
        return {}
    found = {}
    for given, value in settings.items():
        name = _ALIASES.get(given, given)
        number = type(value) in (int, float) and math.isfinite(value)
        if name in (*NAMES, *OPTIONAL) and number:
            found[name] = _rounded(value)
    return found


def _rounded(value: float) -> float:
    """llama.cpp shows 32-bit floats: 0.800000011920929 is 0.8."""
    return round(value, 6) if isinstance(value, float) else value
