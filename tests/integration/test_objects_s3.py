"""The destination on a real S3 store."""

import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import zstandard

from regen_common import errors
from regen_common.objects import ObjectInfo, Objects, open_objects, s3, s3_client, upload
from servers.ports import free_ports
from servers.weed import SECRET_KEY, Weed

NAME = "run/batches/1-000001-abc.jsonl"
IMPATIENT = upload.Timing(connect_s=1, read_s=2, attempts_max=1)


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.fixture(scope="module")
def store() -> Iterator[Weed]:
    with Weed() as weed:
        weed.create_bucket("bucket")
        yield weed


@pytest.fixture(autouse=True)
def _environment(store: Weed, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.env().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def objects(request: pytest.FixtureRequest) -> Iterator[Objects]:
    """A prefix of its own for each test."""
    objects = open_objects(f"s3://bucket/{request.node.name}")
    yield objects
    objects.close()


def test_a_new_object_is_there_with_its_digest_and_its_type(objects: Objects, store: Weed) -> None:
    objects.check()
    objects.put_new(NAME, b"body", sha256=sha256(b"body"), content_type="application/zstd")
    info = objects.head(NAME)
    assert info is not None
    assert (info.name, info.size, info.sha256) == (NAME, 4, sha256(b"body"))
    assert objects.get(NAME) == b"body"
    key = f"{objects.url.removeprefix('s3://bucket/')}/{NAME}"
    client = store.client()
    raw = client.head_object(Bucket="bucket", Key=key)
    client.close()
    assert raw["Metadata"] == {"sha256": sha256(b"body")}
    assert raw["ContentType"] == "application/zstd"


def test_the_same_object_again_is_success_and_another_is_a_conflict(objects: Objects) -> None:
    for _ in range(2):
        objects.put_new(NAME, b"first", sha256=sha256(b"first"))
    with pytest.raises(errors.ObjectConflictError, match=f"{NAME} is at {objects}"):
        objects.put_new(NAME, b"other", sha256=sha256(b"other"))
    assert objects.get(NAME) == b"first"


def test_the_same_content_packed_by_another_compressor_is_the_same_object(
    objects: Objects,
) -> None:
    text = b'{"index":1}\n' * 1_000
    for level in (1, 19):
        body = zstandard.ZstdCompressor(level=level).compress(text)
        objects.put_new(f"{NAME}.zst", body, sha256=sha256(text))
    assert objects.get(f"{NAME}.zst") == zstandard.ZstdCompressor(level=1).compress(text)


@pytest.mark.parametrize(("there", "same"), [(b"body", True), (b"rott", False), (b"longer", False)])
def test_an_object_without_a_digest_is_judged_by_what_is_in_it(
    objects: Objects, there: bytes, same: bool
) -> None:
    objects.put(NAME, there)
    if same:
        objects.put_new(NAME, b"body", sha256=sha256(b"body"))
        return
    with pytest.raises(errors.ObjectConflictError):
        objects.put_new(NAME, b"body", sha256=sha256(b"body"))


def test_the_manifest_is_replaced_whole(objects: Objects) -> None:
    objects.put("run/manifest.json", b'{"long": "first"}')
    objects.put("run/manifest.json", b"{}")
    assert objects.get("run/manifest.json") == b"{}"


def test_what_is_not_there_is_none_and_lists_are_empty(objects: Objects) -> None:
    assert objects.get(NAME) is None
    assert objects.head(NAME) is None
    assert not list(objects.list("run/batches/"))


def test_a_list_of_more_than_a_page_is_whole_and_in_order(objects: Objects) -> None:
    names = [f"run/batches/{number:013d}-{number % 7}" for number in range(1_050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: objects.put(name, name.encode()), reversed(names)))
    objects.put("run/manifest.json", b"{}")
    objects.put("run2/batches/0", b"")
    listed = list(objects.list("run/batches/"))
    assert [info.name for info in listed] == names
    assert {info.size for info in listed} == {len(names[0])}
    assert len(list(objects.list(""))) == len(names) + 2


def race(objects: Objects, monkeypatch: pytest.MonkeyPatch, bodies: list[bytes]) -> list[Any]:
    """No writer PUTs before all have seen that the name is free."""
    gate = threading.Barrier(len(bodies), timeout=10)
    real, first = s3.S3Objects.head, threading.local()

    def head(self: s3.S3Objects, name: str) -> ObjectInfo | None:
        found = real(self, name)
        if not hasattr(first, "over"):
            first.over = True
            gate.wait()
        return found

    monkeypatch.setattr(s3.S3Objects, "head", head)
    with ThreadPoolExecutor(len(bodies)) as pool:
        puts = [pool.submit(objects.put_new, NAME, body, sha256=sha256(body)) for body in bodies]
        return [put.exception() for put in puts]


def test_of_writers_racing_for_one_name_exactly_one_wins_and_the_others_see_the_conflict(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [b"writer %d" % number for number in range(6)]
    ends = race(objects, monkeypatch, bodies)
    won = [body for body, end in zip(bodies, ends, strict=True) if end is None]
    assert [objects.get(NAME)] == won
    assert all(isinstance(end, errors.ObjectConflictError) for end in ends if end is not None)


def test_writers_racing_with_the_same_content_all_succeed(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert race(objects, monkeypatch, [b"same"] * 6) == [None] * 6


def test_a_store_that_ignores_if_none_match_does_not_make_us_overwrite(store: Weed) -> None:
    client = s3_client.open_client(
        bucket="bucket", endpoint_url=store.endpoint_url, checksums="when_required"
    )
    client.meta.events.register("before-call.s3.PutObject", _without_if_none_match)
    objects = s3.S3Objects(client, bucket="bucket", prefix="ignorant")
    objects.put_new(NAME, b"first", sha256=sha256(b"first"))
    objects.put_new(NAME, b"first", sha256=sha256(b"first"))
    with pytest.raises(errors.ObjectConflictError):
        objects.put_new(NAME, b"other", sha256=sha256(b"other"))
    assert objects.get(NAME) == b"first"
    client.close()


def _without_if_none_match(params: dict[str, Any], **_: Any) -> None:
    params["headers"].pop("If-None-Match", None)


def every_use(objects: Objects) -> dict[str, Any]:
    return {
        "check": objects.check,
        "put_new": lambda: objects.put_new(NAME, b"body", sha256=sha256(b"body")),
        "put": lambda: objects.put(NAME, b"body"),
        "get": lambda: objects.get(NAME),
        "list": lambda: list(objects.list("")),
    }


def test_a_missing_bucket_is_refused_with_its_name_and_the_cure(store: Weed) -> None:
    objects = open_objects("s3://nobodys-bucket/x")
    for use, call in every_use(objects).items():
        with pytest.raises(
            errors.DestinationRefusedError, match=r"nobodys-bucket.*create"
        ) as caught:
            call()
        assert store.endpoint_url in str(caught.value), use
    objects.close()


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_a_wrong_key_is_refused_by_the_name_of_its_variable_and_not_shown(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "WRONGVALUE")
    objects = open_objects("s3://bucket/x")
    uses = every_use(objects) | {"head": lambda: objects.head(NAME)}
    for use, call in uses.items():
        with pytest.raises(errors.DestinationRefusedError, match=variable) as caught:
            call()
        assert "WRONGVALUE" not in str(caught.value), use
        assert SECRET_KEY not in str(caught.value), use
    objects.close()


def test_a_store_that_is_down_is_transient_and_named() -> None:
    endpoint_url = f"http://127.0.0.1:{free_ports(1)[0]}"
    client = s3_client.open_client(
        bucket="bucket", endpoint_url=endpoint_url, checksums="when_required", timing=IMPATIENT
    )
    objects = s3.S3Objects(client, bucket="bucket", prefix="", timing=IMPATIENT)
    for use, call in every_use(objects).items():
        with pytest.raises(errors.DestinationError, match=endpoint_url) as caught:
            call()
        assert caught.type is errors.DestinationError, use
    client.close()


def test_a_store_that_comes_back_is_used_again() -> None:
    with Weed() as weed:
        weed.create_bucket("bucket")
        client = s3_client.open_client(
            bucket="bucket",
            endpoint_url=weed.endpoint_url,
            checksums="when_required",
            timing=IMPATIENT,
        )
        objects = s3.S3Objects(client, bucket="bucket", prefix="", timing=IMPATIENT)
        objects.put_new(NAME, b"body", sha256=sha256(b"body"))
        weed.kill()
        with pytest.raises(errors.DestinationError):
            objects.put_new(NAME, b"body", sha256=sha256(b"body"))
        weed.start()
        objects.put_new(NAME, b"body", sha256=sha256(b"body"))
        assert objects.get(NAME) == b"body"
        client.close()
