"""The destination on a real S3 store that is in trouble."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from regen_common import errors
from regen_common.objects import interface, s3, s3_client, upload
from servers.microburst import Microburst
from servers.weed import Weed

NAME = "run/batches/1-000001-abc.jsonl"
BODY = b'{"index":1}\n' * 3_000
PUTS_MAX = 5

Open = Callable[..., s3.S3Objects]


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.fixture(scope="module")
def proxy() -> Iterator[Microburst]:
    with Weed() as weed:
        weed.create_bucket("bucket")
        with Microburst(weed) as burst:
            yield burst


@pytest.fixture
def opened(
    proxy: Microburst, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    """Open the proxied store, with a prefix of its own for each test."""
    for name, value in proxy.env().items():
        monkeypatch.setenv(name, value)
    proxy.set_rules()
    clients = []

    def opener(
        *, attempts_max: int = 8, checksums: interface.Checksums = "when_required"
    ) -> s3.S3Objects:
        timing = upload.Timing(connect_s=2, read_s=1, attempts_max=attempts_max)
        client = s3_client.open_client(
            bucket="bucket", endpoint_url=proxy.endpoint_url, checksums=checksums, timing=timing
        )
        clients.append(client)
        prefix = request.node.name.replace("[", "-").strip("]")
        return s3.S3Objects(
            client, bucket="bucket", prefix=prefix, checksums=checksums, timing=timing
        )

    yield opener
    proxy.set_rules()
    for client in clients:
        client.close()


@pytest.fixture
def backoff_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long botocore would have slept; it does not."""
    slept: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=slept.append))
    return slept


def slow_down(**when: Any) -> dict[str, Any]:
    error = {"code": "SlowDown", "status": 503}
    return {"operation": "PutObject", "error": error, **when}


def test_every_object_arrives_while_half_of_all_puts_are_told_to_slow_down(
    proxy: Microburst, opened: Open, backoff_s: list[float]
) -> None:
    objects = opened()
    proxy.set_rules(slow_down(probability=0.5))
    bodies = {f"run/batches/{number:03d}": b"%d" % number for number in range(40)}

    def put(name: str) -> None:
        for left in reversed(range(PUTS_MAX)):
            try:
                objects.put_new(name, bodies[name], sha256=sha256(bodies[name]))
                break
            except errors.DestinationError:
                if not left:
                    raise

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, bodies))
    assert len(proxy.fired()) >= 10
    assert len(backoff_s) >= 10
    assert {info.name: objects.get(info.name) for info in objects.list("run/")} == bodies


@pytest.mark.parametrize(("refusals", "arrives"), [(7, True), (8, False)])
def test_eight_attempts_are_made_and_then_the_error_is_transient(
    refusals: int,
    arrives: bool,
    proxy: Microburst,
    opened: Open,
    backoff_s: list[float],
) -> None:
    objects = opened()
    proxy.set_rules(slow_down(times=refusals))
    if arrives:
        objects.put_new(NAME, BODY, sha256=sha256(BODY))
    else:
        with pytest.raises(errors.DestinationError, match="SlowDown"):
            objects.put_new(NAME, BODY, sha256=sha256(BODY))
    assert (objects.get(NAME) == BODY) is arrives
    assert len(backoff_s) == 7
    assert sum(backoff_s) < upload.Timing().send_s, "the last attempt is still before the deadline"


# the store takes the object, and its answer never ends
LOST_ANSWER = {"operation": "PutObject", "response": {"set_headers": {"Content-Length": "9999"}}}


@pytest.mark.parametrize("attempts_max", [1, 3])
def test_a_put_that_timed_out_and_landed_all_the_same_is_success(
    attempts_max: int, proxy: Microburst, opened: Open
) -> None:
    objects = opened(attempts_max=attempts_max)
    proxy.set_rules({**LOST_ANSWER, "times": 1})
    objects.put_new(NAME, BODY, sha256=sha256(BODY))
    assert len(proxy.fired()) == 1
    assert objects.get(NAME) == BODY


def test_a_put_that_timed_out_where_another_content_landed_is_a_conflict(
    proxy: Microburst, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = opened(attempts_max=1), opened()
    send = s3.S3Objects._send

    def overtaken(self: s3.S3Objects, *args: Any, **fields: Any) -> None:
        monkeypatch.setattr(s3.S3Objects, "_send", send)
        other.put_new(NAME, b"other", sha256=sha256(b"other"))
        proxy.set_rules({"operation": "PutObject", "timeout_ms": 2_500, "times": 1})
        send(self, *args, **fields)

    monkeypatch.setattr(s3.S3Objects, "_send", overtaken)
    with pytest.raises(errors.ObjectConflictError):
        mine.put_new(NAME, BODY, sha256=sha256(BODY))
    assert mine.get(NAME) == b"other"


CUT = {"operation": "PutObject", "request": {"cut_upload": {"after_bytes": 4096}}}


@pytest.mark.parametrize(
    "rule",
    [{"operation": "PutObject", "reset": True}, CUT, slow_down()],
    ids=["reset", "cut", "slow"],
)
def test_a_put_that_never_lands_is_transient_and_the_next_one_succeeds(
    rule: dict[str, Any], proxy: Microburst, opened: Open, backoff_s: list[float]
) -> None:
    objects = opened(attempts_max=2)
    proxy.set_rules({**rule, "times": 2})
    with pytest.raises(errors.DestinationError) as caught:
        objects.put_new(NAME, BODY, sha256=sha256(BODY))
    assert caught.type is errors.DestinationError
    assert objects.get(NAME) is None
    objects.put_new(NAME, BODY, sha256=sha256(BODY))
    assert objects.get(NAME) == BODY


def test_a_conflicting_request_in_flight_is_transient(proxy: Microburst, opened: Open) -> None:
    objects = opened()
    error = {"code": "ConditionalRequestConflict", "status": 409}
    proxy.set_rules({"operation": "PutObject", "error": error, "times": 1})
    with pytest.raises(errors.DestinationError, match="ConditionalRequestConflict"):
        objects.put_new(NAME, BODY, sha256=sha256(BODY))
    objects.put_new(NAME, BODY, sha256=sha256(BODY))


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        ({"code": "ExpiredToken", "status": 400}, errors.DestinationError, "renew"),
        (
            {"code": "RequestTimeTooSkewed", "status": 403},
            errors.DestinationError,
            "set the clock",
        ),
        (
            {"code": "AccessDenied", "status": 403},
            errors.DestinationRefusedError,
            "s3:PutObject",
        ),
    ],
)
def test_the_reason_is_told_although_the_answer_to_a_head_has_none(
    error: dict[str, Any],
    kind: type[Exception],
    text: str,
    proxy: Microburst,
    opened: Open,
) -> None:
    objects = opened()
    proxy.set_rules({"error": error})
    calls: list[Callable[[], Any]] = [
        lambda: objects.head(NAME),
        lambda: objects.put_new(NAME, BODY, sha256=sha256(BODY)),
        objects.check,
    ]
    for call in calls:
        with pytest.raises(kind, match=text) as caught:
            call()
        assert caught.type is kind


def test_a_body_that_breaks_off_is_read_again(proxy: Microburst, opened: Open) -> None:
    objects = opened()
    objects.put(NAME, BODY)
    broken = {"operation": "GetObject", "response": {"abort_bytes": 1_000}}
    proxy.set_rules({**broken, "times": 2})
    assert objects.get(NAME) == BODY
    proxy.set_rules({**broken, "times": 3})
    with pytest.raises(errors.DestinationError):
        objects.get(NAME)


# what a store does that has never heard of boto3's newer checksums
NO_CHECKSUMS = {
    "operation": "PutObject",
    "headers": {"x-amz-checksum-crc32": ""},
    "error": {"code": "NotImplemented", "status": 501},
}


def test_a_store_without_checksums_works_by_default_and_is_refused_with_them(
    proxy: Microburst, opened: Open
) -> None:
    proxy.set_rules(NO_CHECKSUMS)
    opened().put_new(NAME, BODY, sha256=sha256(BODY))
    with pytest.raises(errors.DestinationRefusedError, match="when_required"):
        opened(checksums="when_supported").put_new("run/batches/2", BODY, sha256=sha256(BODY))


@pytest.mark.parametrize(
    ("checksums", "header"),
    [("when_required", "content-md5"), ("when_supported", "x-amz-checksum-crc32")],
)
def test_every_put_carries_a_checksum_of_one_kind(
    checksums: interface.Checksums, header: str, proxy: Microburst, opened: Open
) -> None:
    objects = opened(checksums=checksums)
    proxy.set_rules({"operation": "PutObject", "headers": {header: ""}, "latency": 1})
    objects.put_new(NAME, BODY, sha256=sha256(BODY))
    objects.put("run/manifest.json", b"{}")
    assert len(proxy.fired()) == 2
