import gzip
import hashlib

import pytest
import zstandard

from regen_common.objects import content

TEXT = b'{"index":1}\n{"index":2}\n' * 5_000
SHA256 = hashlib.sha256(TEXT).hexdigest()
ZSTD = zstandard.ZstdCompressor(level=3).compress(TEXT)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("x.jsonl", TEXT),
        ("x.jsonl.gz", gzip.compress(TEXT)),
        ("x.jsonl.zst", ZSTD),
        ("x.jsonl.zst", zstandard.ZstdCompressor(level=19).compress(TEXT)),
        ("two-frames.zst", b"".join(map(zstandard.compress, (TEXT[:99], TEXT[99:])))),
    ],
)
def test_the_digest_is_of_the_content_whatever_packed_it(name: str, stored: bytes) -> None:
    assert content.sha256_of(name, stored) == SHA256


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("x.zst", ZSTD[:-20]),
        ("x.zst", TEXT),
        ("x.zst", b""),
        ("x.gz", gzip.compress(TEXT)[:-20]),
        ("x.gz", TEXT),
        ("x.gz", gzip.compress(TEXT)[:30] + b"\xff" * 40),
    ],
)
def test_a_damaged_body_never_passes_for_its_content(name: str, stored: bytes) -> None:
    assert content.sha256_of(name, stored) != SHA256


def test_the_same_bytes_are_the_same_object_even_where_they_can_not_be_unpacked() -> None:
    assert content.is_same("x.zst", b"odd", body=b"odd", sha256=SHA256)


def test_another_content_is_another_object() -> None:
    assert not content.is_same("x", TEXT + b"\n", body=TEXT, sha256=SHA256)
