"""HTTP as clients write it, and the command line as a person types it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import regen_sim
from regen_sim import answers
from regen_sim.process import Sim, SimError

DEADLINE_S = 10.0
TESTS = Path(regen_sim.__file__).parent.parent
BODY = b'{"model":"tiny","messages":[{"role":"user","content":"Hi"}]}'
WANT = answers.expected([{"role": "user", "content": "Hi"}])
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    with Sim(reasoning_parser="qwen3", think_open=True) as sim:
        yield sim


@pytest.fixture
def client(sim: Sim) -> Iterator[socket.socket]:
    with socket.create_connection((sim.host, sim.port), timeout=DEADLINE_S) as client:
        yield client


def answer(client: socket.socket) -> tuple[int, bytes]:
    """The next response of this connection."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += received(client)
    head, _, body = got.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += received(client)
    return status, body


def received(client: socket.socket) -> bytes:
    part = client.recv(1000)
    assert part, "closed too early"
    return part


def content(body: bytes) -> str:
    return str(json.loads(body)["choices"][0]["message"]["content"])


def test_a_request_may_come_byte_by_byte(client: socket.socket) -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in CHAT + b"content-length: %d\r\n\r\n" % len(BODY) + BODY:
        client.sendall(bytes([byte]))
    status, body = answer(client)
    assert (status, content(body)) == (200, WANT.content)


def test_connections_are_counted() -> None:
    with Sim() as sim:
        with socket.create_connection((sim.host, sim.port)):
            sim.until(lambda seen: seen["connections"]["open"] == 2)  # and the one that asks
        seen = sim.until(lambda seen: seen["connections"]["open"] == 1)
        assert seen["connections"]["opened"] >= 3


def test_a_body_may_be_chunked(client: socket.socket) -> None:
    chunks = [BODY[:7], BODY[7:20], BODY[20:]]
    coded = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    client.sendall(CHAT + b"transfer-encoding: chunked\r\n\r\n" + coded + b"0\r\n\r\n")
    status, body = answer(client)
    assert (status, content(body)) == (200, WANT.content)


def test_a_client_that_waits_for_100_continue_gets_it_once(client: socket.socket) -> None:
    client.sendall(CHAT + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(BODY))
    assert received(client) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(BODY[:5])
    client.sendall(BODY[5:])
    status, body = answer(client)
    assert (status, content(body)) == (200, WANT.content)


def test_requests_sent_ahead_are_answered_one_after_the_other(client: socket.socket) -> None:
    ping = b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n"
    chat = CHAT + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    client.sendall(ping + chat + ping + b"GET /nope HTTP/1.1\r\nconnection: close\r\n\r\n")
    got = b""
    while part := client.recv(65536):
        got += part
    assert re.findall(rb"HTTP/1\.1 (\d+)", got) == [b"200", b"200", b"200", b"404"]


@pytest.mark.parametrize(
    "raw",
    [b"nonsense\r\n\r\n", CHAT + b"content-length: x\r\n\r\n"],
    ids=["no request line", "no length"],
)
def test_what_is_no_http_is_refused_and_the_connection_closed(
    client: socket.socket, raw: bytes
) -> None:
    client.sendall(raw)
    status, _ = answer(client)
    assert status == 400
    assert client.recv(1) == b""


def test_a_request_that_breaks_a_handler_is_a_500_and_the_next_is_answered(sim: Sim) -> None:
    assert sim.ask("Hi", rid=["a", "list"]).status == 500
    assert sim.ask("Hi").status == 200


def test_metrics_are_zipped_for_who_takes_it(sim: Sim, client: socket.socket) -> None:
    client.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n")
    assert answer(client)[1].startswith(b"\x1f\x8b")
    assert "sglang:num_running_reqs{" in sim.send("GET", "/metrics").body


def test_server_info_has_our_settings_among_all_of_sglang_s() -> None:
    flags = {"version": "0.5.23", "model": "m", "context_length": 4096, "max_running": 7}
    with Sim(**flags, spec=3.0) as sim:
        facts = sim.send("GET", "/server_info").body
        assert len(facts) > 500
        assert (facts["version"], facts["served_model_name"]) == ("0.5.23", "m")
        assert (facts["context_length"], facts["max_req_input_len"]) == (4096, 4090)
        assert facts["internal_states"][0]["avg_spec_accept_length"] == 3.0
        assert "spec_accept_length{" in sim.send("GET", "/metrics").body
        generated = sim.send("POST", "/generate", {"text": "Hi"}).body
        assert generated["meta_info"]["spec_accept_length"] == 3.0


def test_the_port_is_printed_and_written_to_a_file_and_sigterm_ends_it(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "regen_sim", "--port", "0", "--port-file", str(port_file)],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"regen_sim listening on http://127.0.0.1:{port_file.read_text().strip()}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_wrong_usage_is_told_and_starts_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SimError, match="did not start"):
        Sim(latency="quick").start()
    assert "no latency: 'quick'" in capfd.readouterr().err


def test_it_ends_with_the_process_that_started_it() -> None:
    code = "from regen_sim.process import Sim; print(Sim().start().pid, flush=True); import os; os._exit(0)"
    started = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    child = Path(f"/proc/{started.stdout.strip()}/cmdline")
    with Sim() as other:
        other.until(lambda _: not child.exists() or not child.read_bytes())
