import re

import pytest

from regen_common import errors
from regen_common.queue import scripts
from regen_common.run import keys


@pytest.mark.parametrize("name", ["regen", "a", "0-x_y", "a" * 40])
def test_a_run_may_be_called(name: str) -> None:
    assert keys.Keys(run=name).queues == (f"{name}-tools", f"{name}-chat")


@pytest.mark.parametrize("name", ["", "-a", "_a", "A", "a b", "a:b", "a" * 41, "ä"])
def test_a_run_may_not_be_called(name: str) -> None:
    with pytest.raises(errors.UsageError, match="--run"):
        keys.Keys(run=name)


def test_ids_lead_back_to_index_and_category() -> None:
    names = keys.Keys(run="my-run-7")
    assert keys.index_of(names.job_id(12)) == 12
    assert [keys.category_of(queue) for queue in names.queues] == ["tools", "chat"]


def test_every_key_that_a_script_builds_is_in_the_table() -> None:
    table = keys.__doc__ or ""
    listed = {re.sub(r"\{.*", "", name) for name in re.findall(r"``\{p\}:([^`]+)``", table)}
    for name in (*scripts.TRANSITIONS, "prelude"):
        for found in re.findall(r"P \.\. ':([a-z]+:?)", scripts.part(name)):
            assert found in listed | {"new:"}, f"{name}.lua uses {found}"


def test_every_key_of_the_table_can_be_named() -> None:
    names = keys.Keys(run="r")
    built = {
        names.config, names.epoch, names.halt, names.cursor("chat"), names.bits("done"),
        names.rounds, names.redo, names.results, names.cut, names.intents, names.ledger,
        names.stats, names.failures, names.window, names.gpu("h", 1), names.gpus, names.rate,
        names.sweep,
    }  # fmt: skip
    rows = re.findall(r"^``\{p\}:([^`]+)``", keys.__doc__ or "", re.MULTILINE)
    assert len(built) == len(rows)
    assert {key.split(":")[2] for key in built} == {row.split(":")[0] for row in rows}
