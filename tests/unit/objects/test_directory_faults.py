"""A directory destination when the disk, the file system or the process gives out."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regen_common import errors
from regen_common.clock import SystemClock
from regen_common.objects import PUT_DEADLINE_S, directory, exclusive, open_objects, temporary

NAME = "run/batches/1-000001-abc.jsonl"
SHA256 = "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5"  # of b"body"

PUT_A_MEGABYTE = f"""
import hashlib, resource, sys
from regen_common import errors
from regen_common.objects import open_objects
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
body = bytes(1 << 20)
try:
    open_objects(sys.argv[1]).put_new("{NAME}", body, sha256=hashlib.sha256(body).hexdigest())
except errors.DestinationError as error:
    print(error)
"""
DIE_BEFORE_THE_LINK = f"""
import os, signal, sys
from regen_common.objects import open_objects
os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
open_objects(sys.argv[1]).put_new("{NAME}", b"body", sha256="{SHA256}")
"""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_full_disk_is_a_transient_error_that_leaves_no_part_of_the_object(tmp_path: Path) -> None:
    ended = run(PUT_A_MEGABYTE, tmp_path)
    assert ended.stdout.startswith("disk full at "), ended.stderr
    assert not files(tmp_path)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_that_is_full_only_at_the_sync_leaves_nothing_either(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", _raiser(code))
    with pytest.raises(errors.DestinationError, match="disk full"):
        open_objects(str(tmp_path)).put_new(NAME, b"body", sha256=SHA256)
    assert not files(tmp_path)


def test_a_process_that_dies_before_the_link_leaves_nothing_that_is_listed(tmp_path: Path) -> None:
    assert run(DIE_BEFORE_THE_LINK, tmp_path).returncode == -9
    assert len(files(tmp_path)) == 1, "its temporary file"
    objects = open_objects(str(tmp_path))
    assert not list(objects.list(""))
    assert objects.get(NAME) is None
    objects.put_new(NAME, b"body", sha256=SHA256)
    assert [info.name for info in objects.list("")] == [NAME]


def test_opening_removes_old_temporary_files_of_ours_and_nothing_else(tmp_path: Path) -> None:
    run(DIE_BEFORE_THE_LINK, tmp_path)
    (left,) = files(tmp_path)
    foreign, young = left.with_name("notes.tmp"), left.with_name(".regen-h-1-ab.tmp")
    for path in (foreign, young):
        path.write_bytes(b"")
    past_s = SystemClock().time_s() - temporary.TEMPORARY_AGE_S - 1
    os.utime(left, (past_s, past_s))
    os.utime(foreign, (past_s, past_s))
    open_objects(str(tmp_path))
    assert set(files(tmp_path)) == {foreign, young}


def test_the_file_is_synced_before_it_gets_its_name_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, int]] = []
    sync, link = os.fsync, os.link

    def recorded_sync(descriptor: int) -> None:
        steps.append(("sync", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def recorded_link(source: Path, target: Path) -> None:
        steps.append(("link", source.stat().st_ino))
        link(source, target)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "link", recorded_link)
    open_objects(str(tmp_path)).put_new(NAME, b"body", sha256=SHA256)
    file, folder = (tmp_path / NAME).stat().st_ino, (tmp_path / "run/batches").stat().st_ino
    assert steps[-3:] == [("sync", file), ("link", file), ("sync", folder)]
    made = [tmp_path / "run", tmp_path]
    assert {("sync", path.stat().st_ino) for path in made} <= set(steps[:-3])


def test_without_hard_links_the_object_is_still_created_and_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _raiser(errno.EPERM))
    objects = open_objects(str(tmp_path))
    objects.check()
    objects.put_new(NAME, b"body", sha256=SHA256)
    # past the look at what is there: the rename itself has to refuse
    monkeypatch.setattr(Path, "exists", lambda _: False)
    objects.put_new(NAME, b"body", sha256=SHA256)
    with pytest.raises(errors.ObjectConflictError):
        objects.put_new(NAME, b"other", sha256="0" * 64)
    assert objects.get(NAME) == b"body"
    assert files(tmp_path) == [tmp_path / NAME]


def test_a_file_system_that_can_only_overwrite_is_refused_at_the_check_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _raiser(errno.EOPNOTSUPP))
    monkeypatch.setattr(exclusive, "_renameat2", lambda: None)
    objects = open_objects(str(tmp_path))
    with pytest.raises(errors.DestinationRefusedError, match="overwriting"):
        objects.check()
    with pytest.raises(errors.DestinationRefusedError, match="overwriting"):
        objects.put_new(NAME, b"body", sha256=SHA256)
    assert not files(tmp_path)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EACCES, errors.DestinationRefusedError),
        (errno.EROFS, errors.DestinationRefusedError),
        (errno.EXDEV, errors.DestinationRefusedError),
        (errno.EIO, errors.DestinationError),
        (errno.ESTALE, errors.DestinationError),
    ],
)
def test_an_error_of_the_link_is_told_by_its_number(
    code: int, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _raiser(code))
    with pytest.raises(kind) as caught:
        open_objects(str(tmp_path)).put_new(NAME, b"body", sha256=SHA256)
    assert caught.type is kind
    assert str(tmp_path) in str(caught.value)
    assert not files(tmp_path)


@pytest.mark.parametrize("url", ["file/out", "file"])
def test_a_file_in_the_place_of_the_folder_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(errors.DestinationRefusedError, match=r"file.*--to"):
        open_objects(str(tmp_path / url)).check()


def test_a_file_that_took_longer_than_a_put_may_last_does_not_get_its_name(tmp_path: Path) -> None:
    class SlowDisk(SystemClock):
        reads = 0

        def monotonic_s(self) -> float:
            self.reads += 1
            return 0.0 if self.reads == 1 else PUT_DEADLINE_S + 1.0

    for put in ("put_new", "put"):
        objects = directory.DirectoryObjects(tmp_path, clock=SlowDisk())
        extra: dict[str, Any] = {"sha256": SHA256} if put == "put_new" else {}
        with pytest.raises(errors.DestinationError, match="120 s"):
            getattr(objects, put)(NAME, b"body", **extra)
    assert not files(tmp_path)


def _raiser(code: int) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    return fail
