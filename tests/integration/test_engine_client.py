"""The engine's connections, against a server of the test's own that does exactly what it is told."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from regen_common import errors
from regen_consumer.engine import client, http
from regen_consumer.engine.client import Engine, Health
from regen_consumer.engine.faults import Blame, Fault

DEADLINE_S = 20.0
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
RID = "a" * 32
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS.values(), ids=LOOPS.keys())
def run(request):
    """``run(scenario, handler)`` runs ``scenario(engine, server)``; the consumer has uvloop."""

    def run_on_it(scenario, handler=None):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(_staged(scenario, handler or always(OK)))

    return run_on_it


async def _staged(scenario, handler):
    async with asyncio.timeout(DEADLINE_S), Server(handler) as server:
        engine = Engine(server.url, kind="sglang")
        try:
            return await scenario(engine, server)
        finally:
            await engine.close()


class Call:
    """One request as the server got it, and the connection to answer on."""

    def __init__(self, head, body, reader, writer, place):
        self.head = head
        self.body = body
        self.place = place  # how many requests came before it on this connection
        self._reader = reader
        self._writer = writer

    @property
    def path(self):
        return self.head.split(" ")[1]

    @property
    def headers(self):
        lines = self.head.split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}

    async def send(self, *pieces):
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(0)

    def close(self):
        self._writer.close()

    def reset(self):
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def client_is_gone(self):
        assert await self._reader.read(1) == b""


Handler = Callable[[Call], Awaitable[None]]


class Server:
    """Hands each request to ``handler``. Everything happens in the test's own loop."""

    def __init__(self, handler: Handler):
        self._handler = handler
        self._server = None
        self._tasks = set()
        self.calls = []
        self.connections = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, limit=1 << 24, backlog=512
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_listening(self):
        self._server.close()

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        place = 0
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (
                        int(x.split(":")[1])
                        for x in head.split("\r\n")
                        if x.lower().startswith("content-len")
                    ),
                    0,
                )
                call = Call(head.strip(), await reader.readexactly(length), reader, writer, place)
                self.calls.append(call)
                place += 1
                await self._handler(call)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()
        finally:
            self._tasks.discard(task)


def always(*pieces, then=None):
    """A handler that sends the same to everybody."""

    async def handler(call):
        await call.send(*pieces)
        if then is not None:
            getattr(call, then)()

    return handler


async def until(holds):
    """Let the loop go on until ``holds``; the deadline is the scenario's."""
    while not holds():
        await asyncio.sleep(0.001)


async def ask(engine):
    return await engine.complete(b'{"messages":[]}', rid=RID)


async def fault_of(asking):
    with pytest.raises(Fault) as caught:
        await asking
    return caught.value.klass, caught.value.blame


def test_a_response_comes_with_its_status_headers_and_body(run):
    async def scenario(engine, server):
        response = await ask(engine)
        assert (response.status, response.body) == (200, b"{}")
        assert response.headers["content-type"] == "application/json"
        assert 0 < response.latency_s < DEADLINE_S

    run(scenario)


def test_a_request_says_who_asks_what(run):
    async def scenario(engine, server):
        keyed = Engine(f"{server.url}/base/v1/", kind="openai", api_key="k-secret")
        await ask(keyed)
        await keyed.close()
        call = server.calls[0]
        assert call.path == "/base/v1/chat/completions"
        assert call.body == b'{"messages":[]}'
        assert call.headers["host"] == f"127.0.0.1:{server.port}"
        assert call.headers["content-type"] == "application/json"
        assert call.headers["authorization"] == "Bearer k-secret"
        assert call.headers["x-request-id"] == RID

    run(scenario)


def test_connections_are_used_again(run):
    async def scenario(engine, server):
        for _ in range(3):
            await asyncio.gather(*(ask(engine) for _ in range(40)))
        assert len(server.calls) == 120
        assert server.connections == 40

    run(scenario)


def test_there_is_one_connection_for_each_request_in_flight(run):
    all_there = asyncio.Barrier(200)

    async def together(call):
        await all_there.wait()
        await call.send(OK)

    async def scenario(engine, server):
        answers = await asyncio.gather(*(ask(engine) for _ in range(200)))
        assert {answer.status for answer in answers} == {200}

    run(scenario, together)


def test_an_answer_in_small_portions_is_put_together(run):
    body = b'{"text":"' + b"x" * 200_000 + b'"}'
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
    pieces = [(head + body)[place : place + 999] for place in range(0, len(head + body), 999)]

    async def scenario(engine, server):
        assert (await ask(engine)).body == body

    run(scenario, always(*pieces))


def test_a_large_request_goes_out_whole(run):
    async def scenario(engine, server):
        body = b"[" + b" " * 5_000_000 + b"]"
        await engine.complete(body, rid=RID)
        assert server.calls[0].body == body

    run(scenario)


def test_a_refused_connection_is_the_engine_s_fault(run):
    async def scenario(engine, server):
        server.stop_listening()
        assert await fault_of(ask(engine)) == ("unreachable", Blame.ENGINE)

    run(scenario)


def test_an_unknown_host_is_not_reachable(run):
    async def scenario(engine, server):
        nowhere = Engine("http://no-such-host.invalid:1")
        assert await fault_of(ask(nowhere)) == ("unreachable", Blame.ENGINE)
        await nowhere.close()

    run(scenario)


CUTS = {
    "closed before the answer": always(then="close"),
    "reset before the answer": always(then="reset"),
    "closed in the head": always(b"HTTP/1.1 200 OK\r\ncont", then="close"),
    "closed in the body": always(OK[:-1], then="close"),
    "closed between chunks": always(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n", then="close"
    ),
}


@pytest.mark.parametrize("handler", CUTS.values(), ids=CUTS.keys())
def test_a_connection_that_ends_too_early_is_a_cut_answer(run, handler):
    async def scenario(engine, server):
        assert await fault_of(ask(engine)) == ("cut", Blame.UNSURE)
        assert len(server.calls) == 1  # and was not asked again

    run(scenario, handler)


def test_what_is_no_http_is_no_answer(run):
    async def scenario(engine, server):
        assert await fault_of(ask(engine)) == ("invalid_answer", Blame.UNSURE)

    run(scenario, always(b"220 mail.example ESMTP\r\n"))


def test_an_answer_that_is_too_large_is_refused_by_its_head(run):
    gone = asyncio.Event()

    async def huge(call):
        await call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 67108865\r\n\r\n")
        await call.client_is_gone()
        gone.set()

    async def scenario(engine, server):
        assert await fault_of(ask(engine)) == ("invalid_answer", Blame.UNSURE)
        await gone.wait()

    run(scenario, huge)


def test_a_redirect_is_not_followed(run):
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"

    async def scenario(engine, server):
        assert (await ask(engine)).status == 302

    run(scenario, always(moved))


def test_a_proxy_in_the_environment_is_not_used(run, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def scenario(engine, server):
        assert (await ask(engine)).status == 200

    run(scenario)


def test_cancelling_closes_the_connection_at_once_and_hurts_nobody_else(run):
    release, gone = asyncio.Event(), asyncio.Event()

    async def handler(call):
        match len(server_calls):
            case 0:
                server_calls.append(call)
                await call.client_is_gone()
                gone.set()
            case 1:
                server_calls.append(call)
                await release.wait()
                await call.send(OK)
            case _:
                await call.send(OK)

    server_calls: list[Call] = []

    async def scenario(engine, server):
        cancelled = asyncio.create_task(ask(engine))
        await until(lambda: len(server_calls) == 1)
        other = asyncio.create_task(ask(engine))
        await until(lambda: len(server_calls) == 2)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await gone.wait()
        release.set()
        assert (await other).status == 200
        assert (await ask(engine)).status == 200
        assert server.connections == 2  # the cancelled one's is not used again

    run(scenario, handler)


def test_cancelling_in_the_middle_of_an_answer_closes_the_connection(run):
    halfway, gone = asyncio.Event(), asyncio.Event()

    async def half(call):
        await call.send(OK[:-1])
        halfway.set()
        await call.client_is_gone()
        gone.set()

    async def scenario(engine, server):
        task = asyncio.create_task(ask(engine))
        await halfway.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone.wait()

    run(scenario, half)


def test_closing_cuts_what_is_under_way(run):
    async def silent(call):
        await call.client_is_gone()

    async def scenario(engine, server):
        task = asyncio.create_task(ask(engine))
        await until(lambda: server.calls)
        await engine.close()
        assert await fault_of(task) == ("cut", Blame.UNSURE)

    run(scenario, silent)


def test_a_connection_that_the_server_gives_up_is_not_used_again(run):
    async def scenario(engine, server):
        await ask(engine)
        await ask(engine)
        assert server.connections == 2

    run(scenario, always(OK.replace(b"content-length", b"connection: close\r\ncontent-length")))


def test_a_connection_that_was_closed_while_idle_is_not_used(run):
    async def scenario(engine, server):
        await ask(engine)
        server.calls[0].close()
        kept = engine._http._session.connector._conns
        await until(lambda: not any(c.is_connected() for cs in kept.values() for c, _ in cs))
        assert (await ask(engine)).status == 200
        assert server.connections == 2

    run(scenario)


def test_a_connection_that_idled_for_long_is_not_used(run, monkeypatch):
    monkeypatch.setattr(http, "IDLE_S_MAX", -1.0)

    async def scenario(engine, server):
        await ask(engine)
        await ask(engine)
        assert server.connections == 2

    run(scenario)


async def only_the_first_of_each_connection(call):
    """A server whose keep-alive ends just when the second request comes."""
    if call.place == 0:
        await call.send(OK)
    else:
        call.close()


def test_a_request_on_a_busy_connection_that_ends_is_cut_and_not_sent_again(run):
    async def scenario(engine, server):
        await ask(engine)
        assert await fault_of(ask(engine)) == ("cut", Blame.UNSURE)
        assert len(server.calls) == 2

    run(scenario, only_the_first_of_each_connection)


def status_line(status):
    return b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n\r\n" % status


def by_path(pages):
    async def handler(call):
        await call.send(status_line(pages.get(call.path, 404)))

    return handler


@pytest.mark.parametrize(
    ("pages", "health"),
    [
        ({"/health": 200}, Health.WELL),
        ({"/health": 503}, Health.REFUSING),
        ({"/health": 502}, Health.REFUSING),
        ({"/v1/models": 200}, Health.WELL),
        ({"/v1/models": 401}, Health.WELL),  # it is there; its preflight says what is wrong
        ({"/v1/models": 503}, Health.REFUSING),
    ],
)
def test_health_is_what_the_engine_says(run, pages, health):
    async def scenario(engine, server):
        assert await engine.health() is health

    run(scenario, by_path(pages))


def test_an_engine_without_a_connection_is_down(run):
    async def scenario(engine, server):
        server.stop_listening()
        assert await engine.health() is Health.DOWN

    run(scenario)


def test_an_engine_that_is_silent_about_its_health_leaves_it_open(run, monkeypatch):
    monkeypatch.setattr(client, "HEALTH_S_MAX", 0.05)

    async def silent(call):
        await call.client_is_gone()

    async def scenario(engine, server):
        assert await engine.health() is Health.UNSURE

    run(scenario, silent)


def test_progress_of_an_engine_that_shows_none_is_unknown(run):
    async def scenario(engine, server):
        assert await engine.progress() is None
        assert await engine.tokens() is None

    run(scenario, by_path({}))


def test_a_key_that_is_refused_is_a_matter_of_setup(run):
    async def scenario(engine, server):
        assert await fault_of(engine.facts()) == ("unauthorized", Blame.SETUP)

    run(scenario, by_path({"/server_info": 401}))


def test_a_url_without_an_engine_is_a_matter_of_setup(run):
    async def scenario(engine, server):
        assert await fault_of(engine.facts()) == ("wrong_url", Blame.SETUP)
        other = Engine(server.url)
        assert await fault_of(other.facts()) == ("wrong_url", Blame.SETUP)
        await other.close()

    run(scenario, by_path({}))


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:30000",
        "ftp://127.0.0.1",
        "http://",
        "http://host:99999",
        "http://user:pw@host",
        "http://host/?key=1",
        "http://ho st",
        "http://[::1",
        "http://host\r\nx: y",
    ],
)
def test_what_is_no_engine_s_url_is_refused_at_once(url):
    with pytest.raises(errors.UsageError, match="--engine"):
        Engine(url)


def test_odd_keys_and_kinds_are_refused_at_once():
    with pytest.raises(errors.UsageError, match="--api-key"):
        Engine("http://h", api_key="a\r\nb: c")
    with pytest.raises(errors.UsageError, match="--engine-kind"):
        Engine("http://h", kind="tgi")
