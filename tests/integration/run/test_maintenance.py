"""What any consumer does for the whole run, on its ticks."""

import redis

import helpers
from regen_common.queue import transitions
from regen_common.run import keys
from regen_consumer.maintenance import Maintenance


def test_a_dead_consumers_leases_come_back_in_order_and_nothing_is_failed(
    client: redis.Redis,
) -> None:
    client.set("test:now", "1800000000")
    opened = helpers.make_run(client, size=10, sources=helpers.movable_sources())
    one = Maintenance(opened, me="a")
    one.tick()
    claim = transitions.claim(
        queues=[opened.keys.queue("chat")], n=4, token="t", worker="w", lease_s=60
    )
    assert len(opened.queue.execute(claim).jobs) == 4
    client.set("test:now", "1800000059")
    one.tick()
    assert one.books is not None
    assert one.books.leased == 4
    client.set("test:now", "1800000061")
    one.tick()
    assert (one.books.leased, one.books.queued, one.books.failed) == (0, 10, 0)
    ids = client.lrange(keys.rq_queue(opened.keys.queue("chat")), 0, -1)
    assert [keys.index_of(job_id.decode()) for job_id in ids] == list(range(10))
    assert client.keys("rq:execution*") == []


def test_ticks_top_up_what_the_producer_left(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=30, max_queued=10)
    one = Maintenance(opened, me="a")
    one.tick()
    assert one.books is not None
    assert (one.books.queued, one.books.not_enqueued) == (10, 20)


def test_what_is_unaccounted_for_two_ticks_is_put_back_by_one_of_them(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=30)
    one, other = Maintenance(opened, me="a"), Maintenance(opened, me="b")
    one.tick()
    client.delete(opened.keys.job(3))
    client.lrem(keys.rq_queue(opened.keys.queue("chat")), 0, opened.keys.job_id(3))
    one.tick()
    other.tick()
    assert one.books is not None
    assert one.books.unaccounted == 1  # it may be an rq command on its way
    one.tick()
    assert client.get(opened.keys.sweep) == b"a"
    other.tick()
    one.tick()
    assert one.books.unaccounted == 0
