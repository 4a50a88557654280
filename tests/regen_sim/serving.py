"""The endpoints that generate: ``/v1/chat/completions`` and ``/generate``, and who ends them."""

import asyncio
import functools
import os
from collections.abc import Callable
from typing import Final

import orjson

from regen_sim import (
    bodies,
    misdeeds,
    native,
    orders,
    output,
    refusals,
    rendering,
    response,
    scheduler,
    state,
    validation,
    wire,
    work,
)

_DIED: Final = 137
Handler = Callable[[wire.Exchange], response.Response | None]


class Serving:
    """Requests that are answered later, and the rids in use."""

    def __init__(
        self, shared: state.State, server: str, end_if_finished: Callable[[], None]
    ) -> None:
        self._state = shared
        self._server = server
        self._end_if_finished = end_if_finished
        self._settings = settings = shared.settings
        self._jobs: dict[str, scheduler.Job] = {}
        self._headers = (("vary", "Origin"),) if settings.is_new else ()
        self._chat_place = refusals.chat_endpoint(new=settings.is_new)
        self._generate_place = refusals.generate_endpoint(new=settings.is_new)

    def routes(self) -> dict[tuple[str, str], Handler]:
        routes: dict[tuple[str, str], Handler] = {("POST", "/v1/chat/completions"): self._chat}
        if self._settings.is_sglang:
            routes |= {
                ("POST", "/generate"): self._generate,
                ("POST", "/abort_request"): self._abort,
                ("POST", "/flush_cache"): self._flush,
                ("GET", "/flush_cache"): self._flush,
            }
        return routes

    def send(self, exchange: wire.Exchange, answer: response.Response) -> None:
        """Send and count."""
        exchange.send(self._counted(answer))

    def _chat(self, exchange: wire.Exchange) -> response.Response | None:
        parsed = self._body(exchange.request, self._chat_place)
        if parsed.refusal is not None:
            return parsed.refusal
        order = orders.of_chat(parsed.body, self._settings)
        return self._take(exchange, order, self._invalid_chat)

    def _generate(self, exchange: wire.Exchange) -> response.Response | None:
        parsed = self._body(exchange.request, self._generate_place)
        if parsed.refusal is not None:
            return parsed.refusal
        if native.kills(parsed.body, new=self._settings.is_new):
            os._exit(_DIED)
        order = orders.of_generate(parsed.body, self._settings)
        return self._take(exchange, order, self._invalid_generate)

    def _take(
        self,
        exchange: wire.Exchange,
        order: orders.Order,
        refuse: Callable[[orders.Order], response.Response | None],
    ) -> response.Response | None:
        """Count it, misbehave or refuse, or hand it to the scheduler."""
        self._state.seen.generation(order.digest, exchange.request.body)
        box = self._state.box
        chosen = box.choose(order.digest, order.text) if box else []
        refusal = misdeeds.refusal(chosen, order.model) or refuse(order)
        if refusal is not None:
            return refusal
        item = self._state.kitchen.cook(order, chosen)
        return item if isinstance(item, response.Response) else self._submit(exchange, item)

    def _abort(self, exchange: wire.Exchange) -> response.Response:
        """Whatever the rid, 200; every request whose rid begins with it ends."""
        body = self._body(exchange.request, self._generate_place).body
        rid, everything = str(body.get("rid") or ""), bool(body.get("abort_all"))
        if rid or everything:
            for name, job in list(self._jobs.items()):
                if everything or name.startswith(rid):
                    self._state.slots.abort(job)
        return response.empty(200)

    def _flush(self, exchange: wire.Exchange) -> response.Response:
        if not self._state.slots.idle:
            return response.Response(400, b"Flush cache failed.\n", None)
        self._state.kitchen.flush()
        return response.Response(200, _FLUSHED, None)

    def _body(self, request: wire.Request, place: refusals.Endpoint) -> bodies.Parsed:
        if not self._settings.is_sglang:
            return bodies.parse_llama(request.body)
        content_type = request.headers.get("content-type", "")
        return bodies.parse(request.body, content_type, place, new=self._settings.is_new)

    def _invalid_chat(self, order: orders.Order) -> response.Response | None:
        if order.body.get("stream"):
            return refusals.bad_request("regen_sim does not stream its answers.")
        if not self._settings.is_sglang:
            return None
        return validation.refuse(
            order.body,
            new=self._settings.is_new,
            context_length=self._settings.context_length,
            strict_template=self._settings.strict_template,
        )

    def _invalid_generate(self, order: orders.Order) -> response.Response | None:
        return native.refuse(order.body, self._generate_place, new=self._settings.is_new)

    def _submit(self, exchange: wire.Exchange, item: work.Work) -> response.Response | None:
        """Let it run or wait; the answer is sent when it ends."""
        if item.rid in self._jobs or item.rid in self._state.leaked:
            return refusals.bad_request(f"Duplicate request ID detected: {item.rid}")
        tokens = len(item.plan.ids)
        planned_s = self._settings.latency.seconds(item.order.digest, tokens)
        job = scheduler.Job(
            rid=item.rid,
            tokens=0 if item.has("hang") else tokens,
            duration_s=misdeeds.duration_s(planned_s, item.chosen),
            on_end=functools.partial(self._ended, exchange, item),
        )
        self._jobs[item.rid] = job
        exchange.on_lost = functools.partial(self._lost, job)
        if not self._state.slots.submit(job):
            del self._jobs[item.rid]
            exchange.on_lost = None
            return refusals.queue_full()
        self._state.seen.prefilled_tokens += item.order.prompt_tokens
        self._state.seen.cached_tokens += item.cached_tokens
        if _is_unhealthy_hang(item):
            self._state.hanging_unhealthy += 1
        return None

    def _ended(
        self, exchange: wire.Exchange, item: work.Work, ending: scheduler.Ending, tokens: int
    ) -> None:
        del self._jobs[item.rid]
        if ending == "aborted_waiting" and self._settings.version == "0.5.11":
            self._state.leaked.add(item.rid)
        if item.fault is not None and item.has("die") and ending == "done":
            os._exit(int(item.fault.number("code", _DIED)))
        if _is_unhealthy_hang(item):
            self._state.hanging_unhealthy -= 1
        made = output.output_of(item, ending, tokens)
        self._state.seen.ended(ending, made.prompt_tokens)
        exchange.on_lost = None
        if exchange.is_open:
            self._answer(exchange, item, made)
        if self._state.slots.idle:
            self._end_if_finished()

    def _answer(self, exchange: wire.Exchange, item: work.Work, made: output.Output) -> None:
        native_call = exchange.request.path == "/generate"
        make = native.body if native_call else rendering.chat
        body = make(item, made, self._settings)
        fault = item.fault
        if fault is None:
            self.send(exchange, response.json(200, body))
            return
        spoilt = body if native_call else misdeeds.spoil(body, fault)
        answer = response.Response(200, misdeeds.corrupt(orjson.dumps(spoilt), fault))
        misdeeds.deliver(exchange, self._counted(answer), fault, self._server)

    def _counted(self, answer: response.Response) -> response.Response:
        """The answer with the headers that all of this version's have."""
        self._state.seen.statuses[answer.status] += 1
        return answer._replace(headers=answer.headers + self._headers)

    def _lost(self, job: scheduler.Job) -> None:
        """The client has gone: SGLang notices after a while, and aborts."""
        self._state.seen.lost_clients += 1
        loop = asyncio.get_running_loop()
        loop.call_later(self._settings.disconnect_s, self._state.slots.abort, job)


def _is_unhealthy_hang(item: work.Work) -> bool:
    fault = item.fault
    return fault is not None and fault.name == "hang" and str(fault.args.get("health")) == "503"


_FLUSHED: Final = (
    b"Cache flushed.\nPlease check backend logs for more details. (When there are running or"
    b" waiting requests, the operation will not be performed.)\n"
)
