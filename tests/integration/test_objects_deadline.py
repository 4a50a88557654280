"""That a PUT ends in time, against stores that would keep it for ever."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from regen_common import errors
from regen_common.clock import SystemClock
from regen_common.objects import s3, s3_client, upload
from servers.ports import free_ports

NAME = "run/batches/1-000001-abc.jsonl"
TIMING = upload.Timing(connect_s=1.5, read_s=0.4, attempts_max=50, deadline_s=2.9)
SCHEDULING_S = 2


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """That clients leave is what these tests are about."""


class Tarpit:
    """Says 404 to each HEAD, and takes PUTs at ``bytes_per_s`` without ever answering."""

    def __init__(self, bytes_per_s: int) -> None:
        self.puts_at_s: list[float] = []
        self.bytes_taken = 0
        self.closing = threading.Event()
        tarpit = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.send_error(404)

            def do_PUT(self) -> None:
                tarpit.puts_at_s.append(time.monotonic())
                while not tarpit.closing.wait(0.02):
                    taken = len(self.rfile.read(bytes_per_s // 50))
                    tarpit.bytes_taken += taken
                    if not taken:
                        return

            def log_message(self, *_: Any) -> None:
                """Not on stderr."""

        self.server = _Server(("127.0.0.1", 0), Handler)
        # inherited by each connection; else the kernel takes megabytes at once
        self.server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTARPIT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "regen-tarpit-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


def seconds_of_put(tarpit: Tarpit, body: bytes) -> Iterator[float]:
    """By way of ``put_new``, then of ``put``: how long until each gives up."""
    endpoint_url = f"http://127.0.0.1:{tarpit.server.server_port}"
    client = s3_client.open_client(
        bucket="bucket", endpoint_url=endpoint_url, checksums="when_required", timing=TIMING
    )
    objects = s3.S3Objects(client, bucket="bucket", prefix="", timing=TIMING)
    for extra in ({"sha256": "0" * 64}, {}):
        put: Any = objects.put_new if extra else objects.put
        began_s = time.monotonic()
        with pytest.raises(errors.DestinationError, match="did not answer in time"):
            put(NAME, body, **extra)
        yield time.monotonic() - began_s
    client.close()


def test_a_store_that_never_answers_is_tried_again_until_the_deadline_and_no_longer() -> None:
    with Tarpit(bytes_per_s=200) as tarpit:
        for took_s in seconds_of_put(tarpit, b"body"):
            first_s, last_s = tarpit.puts_at_s[0], tarpit.puts_at_s[-1]
            assert len(tarpit.puts_at_s) >= 2
            assert last_s - first_s <= TIMING.send_s
            assert took_s <= TIMING.deadline_s + SCHEDULING_S
            tarpit.puts_at_s.clear()


def test_a_store_that_takes_a_body_drop_by_drop_does_not_get_it_whole_after_the_deadline() -> None:
    body = bytes(24_000_000)
    with Tarpit(bytes_per_s=3_000_000) as tarpit:
        for took_s in seconds_of_put(tarpit, body):
            assert len(tarpit.puts_at_s) == 1, "it is the deadline that ends it, not a time-out"
            assert took_s <= TIMING.deadline_s + SCHEDULING_S
            assert 0 < tarpit.bytes_taken < len(body)
            tarpit.puts_at_s.clear()
            tarpit.bytes_taken = 0


def test_no_connection_is_made_for_a_put_whose_time_is_over() -> None:
    clock = SystemClock()
    # over https nothing reads, and so nothing notices, before the body is sent
    client = s3_client.open_client(
        bucket="bucket",
        endpoint_url=f"https://127.0.0.1:{free_ports(1)[0]}",
        checksums="when_required",
    )
    late = upload.Upload(b"body", clock=clock, until_s=clock.monotonic_s() - 1)
    with pytest.raises(upload.OutOfTimeError):
        client.put_object(Bucket="bucket", Key="key", Body=late, ContentMD5="x")
    client.close()
