"""From an order to work for the scheduler."""

from collections import OrderedDict
from typing import Any, Final

from regen_sim import answers, faults, options, orders, plan, refusals, response, work

_REMEMBERED_MAX: Final = 20_000
_CACHED_AT_LEAST: Final = 3  # the beginning that all prompts share
_ENDLESS_MAX: Final = 4_096  # tokens of an answer without an end and without a cap
_RESERVED: Final = 2  # tokens of the context that are never generated


class Kitchen:
    """Makes work from orders, and remembers which prompts it has met."""

    def __init__(self, settings: options.Options) -> None:
        self._settings = settings
        self._cached: OrderedDict[str, None] = OrderedDict()
        self._tools: OrderedDict[str, answers.Tool] = OrderedDict()

    def flush(self) -> None:
        """Forget the prompts; the next answer to each has few cached tokens."""
        self._cached.clear()

    def cook(
        self, order: orders.Order, chosen: list[faults.Fault]
    ) -> work.Work | response.Response:
        """Work for a validated order, or its refusal for its length."""
        refusal = self._too_long(order)
        if refusal is not None:
            return refusal
        fault = faults.other_than_slow(chosen)
        return work.Work(
            order=order,
            rid=order.rid or work.new_rid(),
            cached_tokens=self._cache(order),
            plan=self._plan(order, fault),
            chosen=chosen,
            fault=fault,
        )

    def _plan(self, order: orders.Order, fault: faults.Fault | None) -> plan.Plan:
        """What the generation comes to, cut to what was wanted and what there is room for."""
        tool = self._tool(order)
        made = plan.make(answers.draft(order.digest, tool), order.opening, fault, tool)
        if order.begun:
            made = plan.without(made, order.begun)
        room = max(0, self._settings.context_length - order.prompt_tokens - _RESERVED)
        limit = room if order.tokens_max is None else min(order.tokens_max, room)
        if order.endless:
            made = plan.endless(made, limit if order.tokens_max else min(room, _ENDLESS_MAX))
        huge = fault is not None and fault.name == "huge"
        return made if huge else plan.cap(made, limit)

    def _tool(self, order: orders.Order) -> answers.Tool | None:
        """The tool to call; that of a prompt known by its ids alone is remembered."""
        if order.tool is not None:
            _remember(self._tools, order.digest, order.tool)
            return order.tool
        return self._tools.get(order.digest) if order.has_tools else None

    def _too_long(self, order: orders.Order) -> response.Response | None:
        context, tokens = self._settings.context_length, order.prompt_tokens
        wanted = order.tokens_max or 0
        if tokens < context and tokens + wanted <= context:
            return None
        if not self._settings.is_sglang:
            return _too_long_for_llama(tokens, context) if tokens >= context else None
        message = refusals.too_long(tokens, context)
        if tokens < context:
            message = refusals.too_many_wanted(tokens, wanted, context)
        chat = "messages" in order.body
        return refusals.bad_request(message) if chat else refusals.generate_error(message)

    def _cache(self, order: orders.Order) -> int:
        """How many of the prompt's tokens are in the cache, where they are from now on."""
        met = order.digest in self._cached
        shared = min(_CACHED_AT_LEAST, order.prompt_tokens - 1) if self._cached else 0
        _remember(self._cached, order.digest, None)
        return order.prompt_tokens - 1 if met else shared


def _too_long_for_llama(tokens: int, context: int) -> response.Response:
    message = (
        f"request ({tokens} tokens) exceeds the available context size ({context} tokens),"
        " try increasing it"
    )
    kind = "exceed_context_size_error"
    return refusals.llama(400, message, kind, n_prompt_tokens=tokens, n_ctx=context)


def _remember(memory: "OrderedDict[str, Any]", digest: str, value: Any) -> None:
    memory[digest] = value
    memory.move_to_end(digest)
    if len(memory) > _REMEMBERED_MAX:
        memory.popitem(last=False)
