"""How long an answer takes: the same for the same prompt."""

import argparse
import math
import random
from dataclasses import dataclass
from typing import Final

_KINDS: Final = {"fixed": 1, "lognormal": 2, "tok/s": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """``fixed`` (seconds), ``lognormal`` (mean seconds, sigma) or ``tok/s`` (tokens per second)."""

    kind: str
    numbers: tuple[float, ...]

    def seconds(self, digest: str, tokens: int) -> float:
        """For an answer of so many tokens to the prompt of this digest."""
        match self.kind:
            case "fixed":
                return self.numbers[0]
            case "tok/s":
                return tokens / self.numbers[0]
            case _:
                mean_s, sigma = self.numbers
                middle = math.log(mean_s) - sigma * sigma / 2
                return random.Random(digest).lognormvariate(middle, sigma)


def parse(text: str) -> Latency:
    """``0``, ``fixed:0.2``, ``lognormal:MEAN:SIGMA`` or ``tok/s:N``."""
    kind, *numbers = text.split(":")
    if not numbers:
        kind, numbers = "fixed", [text]
    try:
        values = tuple(float(number) for number in numbers)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no latency: {text!r}") from error
    if _KINDS.get(kind) != len(values) or (kind != "fixed" and min(values) <= 0):
        raise argparse.ArgumentTypeError(f"no latency: {text!r}; try fixed:0.2 or tok/s:100")
    return Latency(kind=kind, numbers=values)
