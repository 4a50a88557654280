import pytest

from regen_common.objects import names


@pytest.mark.parametrize("name", ["a", "run/manifest.json", "run/batches/1-2-a.jsonl.zst", "a b/ü"])
def test_a_relative_name_is_accepted_as_it_is(name: str) -> None:
    assert names.require_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a/.", "a\0b", "run/tmp/.regen-h-1-a.tmp"],
)
def test_a_name_that_could_leave_the_destination_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        names.require_name(name)


@pytest.mark.parametrize("prefix", ["", "run/", "run/batches/", "run/batches/000"])
def test_a_prefix_may_be_empty_or_end_with_a_slash(prefix: str) -> None:
    assert names.require_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["/", "//", "/run/", "run//", "../", "run/../../"])
def test_a_prefix_that_could_leave_the_destination_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError):
        names.require_prefix(prefix)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("run/batches/x", "run/tmp"), ("run/manifest.json", "run/tmp"), ("x", "")],
)
def test_temporary_files_are_beside_the_batches_and_not_among_them(name: str, folder: str) -> None:
    assert names.temporary_folder(name) == folder
