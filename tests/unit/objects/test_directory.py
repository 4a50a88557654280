import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from regen_common import errors
from regen_common.objects import Objects, exclusive, open_objects

NAME = "run/batches/1-000001-abc.jsonl"


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return open_objects(str(tmp_path / "out"))


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_new_object_is_there_whole_and_leaves_nothing_beside_it(
    objects: Objects, tmp_path: Path
) -> None:
    objects.put_new(NAME, b"body", sha256=sha256(b"body"))
    assert objects.get(NAME) == b"body"
    assert files(tmp_path / "out") == [NAME]


def test_the_same_object_again_is_success(objects: Objects) -> None:
    for _ in range(2):
        objects.put_new(NAME, b"body", sha256=sha256(b"body"))
    assert objects.get(NAME) == b"body"


def test_another_content_under_the_name_is_a_conflict_and_nothing_is_overwritten(
    objects: Objects, tmp_path: Path
) -> None:
    objects.put_new(NAME, b"first", sha256=sha256(b"first"))
    with pytest.raises(errors.ObjectConflictError, match=NAME):
        objects.put_new(NAME, b"other", sha256=sha256(b"other"))
    assert objects.get(NAME) == b"first"
    assert files(tmp_path / "out") == [NAME]


def test_the_same_content_packed_by_another_compressor_is_the_same_object(
    objects: Objects,
) -> None:
    text = b'{"index":1}\n' * 1_000
    for level in (1, 19):
        body = zstandard.ZstdCompressor(level=level).compress(text)
        objects.put_new(f"{NAME}.zst", body, sha256=sha256(text))
    assert objects.get(f"{NAME}.zst") == zstandard.ZstdCompressor(level=1).compress(text)


def test_a_damaged_object_under_the_name_is_a_conflict(objects: Objects, tmp_path: Path) -> None:
    text = b'{"index":1}\n' * 1_000
    body = zstandard.compress(text)
    objects.put_new(f"{NAME}.zst", body, sha256=sha256(text))
    (tmp_path / "out" / f"{NAME}.zst").write_bytes(body[:-9])
    with pytest.raises(errors.ObjectConflictError):
        objects.put_new(f"{NAME}.zst", body, sha256=sha256(text))


def race(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, bodies: list[bytes]
) -> list[BaseException | None]:
    """All writers stand before the last step when the first may take it."""
    gate = threading.Barrier(len(bodies), timeout=10)
    real: Callable[[Path, Path], None] = exclusive.publish

    def publish(temporary: Path, final: Path) -> None:
        gate.wait()
        real(temporary, final)

    monkeypatch.setattr(exclusive, "publish", publish)
    with ThreadPoolExecutor(len(bodies)) as pool:
        puts = [pool.submit(objects.put_new, NAME, body, sha256=sha256(body)) for body in bodies]
        return [put.exception() for put in puts]


def test_of_writers_racing_for_one_name_exactly_one_wins_and_the_others_see_the_conflict(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bodies = [b"writer %d" % number for number in range(8)]
    ends = race(objects, monkeypatch, bodies)
    won = [body for body, end in zip(bodies, ends, strict=True) if end is None]
    lost = [end for end in ends if end is not None]
    assert [objects.get(NAME)] == won
    assert all(isinstance(end, errors.ObjectConflictError) for end in lost)
    assert files(tmp_path / "out") == [NAME]


def test_writers_racing_with_the_same_content_all_succeed(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert race(objects, monkeypatch, [b"same"] * 8) == [None] * 8
    assert objects.get(NAME) == b"same"


def test_the_manifest_is_replaced_whole(objects: Objects, tmp_path: Path) -> None:
    objects.put("run/manifest.json", b'{"long": "first"}')
    objects.put("run/manifest.json", b"{}")
    assert objects.get("run/manifest.json") == b"{}"
    assert files(tmp_path / "out") == ["run/manifest.json"]


def test_a_list_is_in_order_of_names_as_a_bucket_would_give_it(objects: Objects) -> None:
    names = ["run/a/z", "run/a-b", "run/a0", "run/batches/2", "run/batches/10", "other/x", "run.b"]
    for name in names:
        objects.put(name, name.encode())
    assert [info.name for info in objects.list("")] == sorted(names)
    assert [info.name for info in objects.list("run/")] == sorted(n for n in names if "run/" in n)
    assert [info.name for info in objects.list("run/batches/1")] == ["run/batches/10"]
    assert [info.size for info in objects.list("run/batches/")] == [14, 13]


def test_what_is_not_there_is_none_and_lists_are_empty(objects: Objects) -> None:
    assert objects.get(NAME) is None
    assert objects.head(NAME) is None
    assert not list(objects.list("run/batches/"))


def test_head_tells_the_digest_of_what_is_there_now(objects: Objects, tmp_path: Path) -> None:
    objects.put_new(NAME, b"body", sha256=sha256(b"body"))
    (tmp_path / "out" / NAME).write_bytes(b"rotten")
    info = objects.head(NAME)
    assert info is not None
    assert (info.name, info.size, info.sha256) == (NAME, 6, sha256(b"rotten"))
    assert info.modified == (tmp_path / "out" / NAME).stat().st_mtime


def test_check_makes_the_folder_and_leaves_it_empty(objects: Objects, tmp_path: Path) -> None:
    objects.check()
    objects.check()
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["../out2/x", "/etc/x", "run/../../x"])
def test_no_name_leads_out_of_the_folder(objects: Objects, name: str) -> None:
    with pytest.raises(ValueError):
        objects.put(name, b"x")
    with pytest.raises(ValueError):
        objects.get(name)
