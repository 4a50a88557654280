"""Queues filled from the cursors, within a window, by many at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

import helpers
from regen_common.queue import topup, transitions
from regen_common.run import books, keys, opening


def fill_all(opened: opening.OpenRun, *, max_queued: int) -> topup.Filled:
    top = topup.TopUp(opened.client, opened.queue, size=opened.config.input, max_queued=max_queued)
    return top.fill(calls_max=10_000)


def queued(opened: opening.OpenRun, category: str) -> list[int]:
    ids = opened.client.lrange(keys.rq_queue(opened.keys.queue(category)), 0, -1)
    return [keys.index_of(job_id.decode()) for job_id in ids]


def count(opened: opening.OpenRun) -> books.Books:
    return books.from_counted(opened.queue.execute(transitions.books()))


def test_every_prompt_gets_a_job_in_order_of_index(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=3_000, tools_from=2_500)
    client.setbit(opened.keys.bits("rejected"), 17, 1)
    client.hset(opened.keys.config, mapping={"rejected": "1", "plan:chat": "2499"})
    filled = fill_all(opened, max_queued=1_000_000)
    assert (filled.made, filled.at_end, filled.full) == (2_999, True, False)
    assert queued(opened, "tools") == list(range(2_500, 3_000))
    assert queued(opened, "chat") == [i for i in range(2_500) if i != 17]
    assert count(opened).unaccounted == 0


@pytest.mark.parametrize("max_queued", [1, 7, 600, 1_234])
def test_the_window_is_kept_and_tools_are_there_from_the_start(
    client: redis.Redis, max_queued: int
) -> None:
    opened = helpers.make_run(client, size=3_000, tools_from=2_500, max_queued=max_queued)
    filled = fill_all(opened, max_queued=max_queued)
    assert (filled.made, filled.full) == (max_queued, True)
    if max_queued >= 600:
        assert len(queued(opened, "tools")) >= 100
    assert count(opened).unaccounted == 0


def test_several_at_once_make_no_job_twice(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=5_000, tools_from=4_000)
    with ThreadPoolExecutor(4) as pool:
        filled = list(pool.map(lambda _: fill_all(opened, max_queued=1_000_000), range(4)))
    assert all(one.at_end for one in filled)
    assert sorted(queued(opened, "chat")) == list(range(4_000))
    assert sorted(queued(opened, "tools")) == list(range(4_000, 5_000))


def test_filling_goes_on_where_it_stopped_and_ends_at_the_end(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=2_000)
    top = topup.TopUp(client, opened.queue, size=2_000, max_queued=1_000_000)
    assert not top.fill(calls_max=2).at_end
    other = topup.TopUp(client, opened.queue, size=2_000, max_queued=1_000_000)
    assert other.fill(calls_max=100).at_end
    assert top.fill(calls_max=100).made == 0
    assert queued(opened, "chat") == list(range(2_000))


def test_a_sparse_category_is_found_far_ahead(client: redis.Redis) -> None:
    size = 400_000
    opened = helpers.make_run(client, size=size)
    last = size - 3
    client.setbit(opened.keys.bits("tools"), last, 1)
    filled = topup.TopUp(client, opened.queue, size=size, max_queued=1_000_000).fill(calls_max=1)
    assert filled.made == 1
    assert queued(opened, "tools") == [last]


def delete_by_hand(opened: opening.OpenRun, index: int) -> None:
    """As ``job.delete()`` of RQ does."""
    opened.client.delete(opened.keys.job(index))
    opened.client.lrem(keys.rq_queue(opened.keys.queue("chat")), 0, opened.keys.job_id(index))


@pytest.mark.parametrize("deep", [False, True])
def test_a_sweep_finds_what_is_in_no_place(client: redis.Redis, deep: bool) -> None:
    opened = helpers.make_run(client, size=1_500, tools_from=1_400)
    fill_all(opened, max_queued=1_000_000)
    delete_by_hand(opened, 700)
    if deep:  # the hash says queued, and no list has it: a stock worker died with it
        client.lrem(keys.rq_queue(opened.keys.queue("chat")), 0, opened.keys.job_id(800))
    assert count(opened).unaccounted == 1 + deep
    sweep = topup.Sweep(client, opened.queue, size=1_500)
    assert sum(sweep.run(deep=False)) == 1
    assert count(opened).unaccounted == int(deep)
    if deep:
        assert sum(sweep.run(deep=True)) == 1
    assert count(opened).unaccounted == 0
    assert sum(sweep.run(deep=True)) == 0
