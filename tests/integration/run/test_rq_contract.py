"""What of RQ's inner layout we rely on: if a new RQ changes it, this fails before a run does."""

import redis
from rq import Queue
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, StartedJobRegistry
from rq.version import VERSION
from rq.worker import BaseWorker

import helpers
from regen_common.queue import shapes, transitions
from regen_consumer import worker


def claim(opened: helpers.opening.OpenRun, n: int) -> list[shapes.Claimed]:
    call = transitions.claim(
        queues=[opened.keys.queue("chat")], n=n, token="t", worker="w1", lease_s=60
    )
    return opened.queue.execute(call).jobs


def test_the_version_is_the_one_whose_inner_names_we_use() -> None:
    assert VERSION.startswith("3.0.")
    for name in (
        "bootstrap",
        "heartbeat",
        "handle_payload",
        "run_maintenance_tasks",
        "set_state",
        "teardown",
    ):
        assert callable(getattr(BaseWorker, name)), name


def test_our_jobs_are_jobs_to_rq(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=3)
    opened.queue.execute(transitions.enqueue(category="chat", indices=[0, 1, 2]))
    queue = Queue("regen-chat", connection=client)
    assert queue.job_ids == ["regen-0", "regen-1", "regen-2"]
    assert queue in Queue.all(connection=client)
    job = Job.fetch("regen-1", connection=client, serializer="json")
    assert (job.func_name, job.args) == ("regen_consumer.jobs.regenerate", [1])
    assert job.get_status() == JobStatus.QUEUED
    assert (job.retries_left, job.result_ttl, job.failure_ttl, job.timeout) == (1000, 0, -1, -1)
    assert job.created_at.year >= 2026


def test_every_field_of_a_job_keeps_redis_compact_encoding(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=2, run="a" * 33)
    opened.queue.execute(transitions.enqueue(category="chat", indices=[1]))
    key = opened.keys.job(1)
    assert max(len(value) for value in client.hvals(key)) <= 64
    assert client.object("encoding", key) == b"listpack"


def test_a_queued_prompt_takes_less_than_400_bytes(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=20_000)
    before = client.info("memory")["used_memory"]
    for first in range(0, 20_000, 500):
        indices = list(range(first, first + 500))
        opened.queue.execute(transitions.enqueue(category="chat", indices=indices))
    assert (client.info("memory")["used_memory"] - before) / 20_000 < 400


def test_a_lease_is_an_execution_to_rq(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=3)
    opened.queue.execute(transitions.enqueue(category="chat", indices=[0, 1, 2]))
    (job,) = claim(opened, 1)
    registry = StartedJobRegistry("regen-chat", connection=client)
    assert registry.get_job_ids() == ["regen-0"]
    (execution,) = Job.fetch("regen-0", connection=client).get_executions()
    assert (execution.id, execution.worker_name) == (job.lease.eid, "w1")


def test_a_failed_prompt_is_a_failed_job_with_a_result(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=3)
    opened.queue.execute(transitions.enqueue(category="chat", indices=[0]))
    (job,) = claim(opened, 1)
    from regen_consumer import work

    call = transitions.fail(
        lease=job.lease,
        round=0,
        failure={"class": "bad_request"},
        result=work._rq_result(
            "bad_request", "no such thing", "w1", job.lease.eid, status="failed"
        ),
        worker="w1",
        working_s=1.0,
    )
    assert opened.queue.execute(call) == "ok"
    assert FailedJobRegistry("regen-chat", connection=client).get_job_ids() == ["regen-0"]
    found = Job.fetch("regen-0", connection=client)
    assert found.is_failed
    result = found.latest_result()
    assert result is not None
    assert result.type == result.Type.FAILED
    assert "bad_request: no such thing" in str(result.exc_string)


def test_a_worker_of_ours_is_a_worker_to_rq(client: redis.Redis) -> None:
    ours = worker.RegenWorker(
        ["regen-tools", "regen-chat"],
        name="regen-host-gpu0-1",
        connection=client,
        ttl_s=30,
        on_command=lambda _payload: None,
    )
    ours.bootstrap("WARNING")
    try:
        (found,) = BaseWorker.all(connection=client)
        assert (found.name, found.get_state()) == ("regen-host-gpu0-1", "started")
        client.delete(ours.key)
        ours.register_again()
        ours.heartbeat()
        assert 0 < client.ttl(ours.key) <= 30
        assert [w.name for w in BaseWorker.all(connection=client)] == ["regen-host-gpu0-1"]
    finally:
        ours.teardown()
