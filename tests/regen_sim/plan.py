"""What a request's generation will come to: the output ids, whole, and how they end."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from regen_sim import answers, faults, prompts
from regen_sim import vocabulary as v

Finish = Literal["stop", "length", "abort"]

_CLOSING: Final = (v.NEWLINE, v.THINK_CLOSE, v.BLANK_LINE)
_TRIVIAL: Final = (v.OK, v.DOT)
_BYTES_PER_WORD: Final = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """``ids`` end with ``<|im_end|>`` where ``finish`` is stop."""

    ids: tuple[int, ...]
    finish: Finish


def make(
    draft: answers.Draft,
    opening: prompts.Opening,
    fault: faults.Fault | None,
    tool: answers.Tool | None,
) -> Plan:
    """The generation without a cap. A fault that is not about the answer changes nothing."""
    if fault is None:
        return _stopped(_ids(draft.reasoning, draft.content, opening))
    match fault.name:
        case "trivial":
            return _stopped(_trivial(opening))
        case "empty":
            return _stopped(())
        case "thinking_only":
            return _stopped(_thinking(draft, opening, closed=bool(fault.args.get("closed", True))))
        case "truncated" | "abort":
            whole = _ids(draft.reasoning, draft.content, opening)
            kept = max(1, int(len(whole) * fault.number("share", 0.5)))
            finish: Finish = "length" if fault.name == "truncated" else "abort"
            return Plan(ids=whole[:kept], finish=finish)
        case _:
            content = _content(draft, fault, tool)
            return _stopped(_ids(draft.reasoning, content, opening))


def cap(plan: Plan, tokens_max: int) -> Plan:
    """The plan cut at so many tokens."""
    if len(plan.ids) <= tokens_max:
        return plan
    return Plan(ids=plan.ids[: max(0, tokens_max)], finish="length")


def endless(plan: Plan, tokens: int) -> Plan:
    """With ``ignore_eos``: no end before the cap."""
    body = plan.ids[:-1] if plan.finish == "stop" else plan.ids
    more = v.words(len(body), max(0, tokens - len(body)))
    return Plan(ids=(*body, *more)[:tokens], finish="length")


def without(plan: Plan, begun: Sequence[int] | str) -> Plan:
    """What is left of it after a beginning that the request brought along, as ids or as text.

    A beginning that is none of this plan's leaves the plan whole.
    """
    count = _count_in(plan, begun) if isinstance(begun, str) else len(begun)
    first = plan.ids[:count]
    matches = v.decode(first) == begun if isinstance(begun, str) else first == tuple(begun)
    return dataclasses.replace(plan, ids=plan.ids[count:]) if matches else plan


def _count_in(plan: Plan, text: str) -> int:
    """How many of the plan's tokens make up so much text."""
    wanted = len(text.encode())
    length = count = 0
    while length < wanted and count < len(plan.ids):
        length += len(v.PIECES[plan.ids[count]])
        count += 1
    return count


def _stopped(ids: tuple[int, ...]) -> Plan:
    return Plan(ids=(*ids, v.IM_END), finish="stop")


def _ids(
    reasoning: Sequence[int], content: Sequence[int], opening: prompts.Opening
) -> tuple[int, ...]:
    match opening:
        case "closed":
            return tuple(content)
        case "open":
            return (*reasoning, *_CLOSING, *content)
        case _:
            return (v.THINK_OPEN, v.NEWLINE, *reasoning, *_CLOSING, *content)


def _thinking(draft: answers.Draft, opening: prompts.Opening, *, closed: bool) -> tuple[int, ...]:
    if opening == "closed":
        return ()
    whole = _ids(draft.reasoning, (), opening)
    return whole if closed else whole[: -len(_CLOSING)]


def _trivial(opening: prompts.Opening) -> tuple[int, ...]:
    match opening:
        case "closed":
            return _TRIVIAL
        case "open":
            return (*_CLOSING, *_TRIVIAL)
        case _:
            return (v.THINK_OPEN, v.BLANK_LINE, *_CLOSING[1:], *_TRIVIAL)


def _content(draft: answers.Draft, fault: faults.Fault, tool: answers.Tool | None) -> Sequence[int]:
    plain = draft.content[: v.place_of(v.TOOL_OPEN, draft.content)]
    calling = tool or answers.Tool(name="look_up", parameters=(("query", "string"),))
    match fault.name:
        case "loop":
            tail = v.words(7, 12) * (int(fault.number("tokens", 600)) // 12)
            return (*draft.content, *tail)
        case "stray_think":
            middle = len(draft.content) // 2
            first, last = draft.content[:middle], draft.content[middle:]
            return (*first, v.NEWLINE, v.THINK_CLOSE, v.BLANK_LINE, *last)
        case "huge":
            count = int(fault.number("mb", 4) * 1024 * 1024 / _BYTES_PER_WORD)
            return (*draft.content, *(v.words(11, 10_000) * (count // 10_000 + 1)))
        case "tool_call":
            before = () if fault.args.get("bare") else (*draft.content[:10], v.BLANK_LINE)
            return (*before, *answers.call_ids(calling, draft.digest))
        case "bad_tool_call":
            return _broken(answers.call_ids(calling, draft.digest))
        case "no_tool_call":
            return plain if v.TOOL_OPEN in draft.content else draft.content
        case _:
            return draft.content


def _broken(call: list[int]) -> list[int]:
    """A call with stray text among its parameters, as small models write it."""
    text = v.decode(call[1:-1])
    return [v.TOOL_OPEN, *v.spell(text.replace("</parameter>", "</parameter>\n3", 1)), v.TOOL_CLOSE]
