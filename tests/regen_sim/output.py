"""What a generation came to, and the figures that every body states about it."""

from dataclasses import dataclass
from typing import Any, Final

from regen_sim import options, plan, work
from regen_sim import vocabulary as v


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What was generated: the ids, how they ended, and the token that stopped them."""

    ids: tuple[int, ...]
    finish: plan.Finish
    prompt_tokens: int

    @property
    def matched_stop(self) -> int | None:
        return v.IM_END if self.finish == "stop" else None


_ABORTED_WAITING: Final = Output(ids=(), finish="abort", prompt_tokens=0)


def output_of(item: work.Work, ending: str, tokens: int) -> Output:
    """The part of the plan that the scheduler came to."""
    if ending == "aborted_waiting":
        return _ABORTED_WAITING
    finish: plan.Finish = item.plan.finish if ending == "done" else "abort"
    return Output(ids=item.plan.ids[:tokens], finish=finish, prompt_tokens=item.order.prompt_tokens)


def text_of(output: Output, body: dict[str, Any]) -> str:
    """The text, with ``<|im_end|>`` only for who asked for special tokens and no trimming."""
    shown = body.get("no_stop_trim") and body.get("skip_special_tokens") is False
    stopped = output.finish == "stop" and not shown
    return v.decode(output.ids[:-1] if stopped else output.ids)


def reasoning_tokens(item: work.Work, output: Output, settings: options.Options) -> int:
    """Up to and with ``</think>``; 0 without the parser, or with the thinking off."""
    if not settings.reasoning_parser or item.order.opening == "closed" or output.prompt_tokens == 0:
        return 0
    place = v.place_of(v.THINK_CLOSE, output.ids)
    return place + 1 if place >= 0 else max(1, len(output.ids))


def weight_versions(output: Output) -> list[dict[str, Any]]:
    return [{"version": "default", "start": 0, "end": len(output.ids)}]
