"""The configuration in Redis: versions, history, pins, and changes by several at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

import helpers
from regen_common import errors
from regen_common.run import config


def test_a_change_has_a_version_and_a_line_in_the_history(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=1)
    after = config.change(client, opened.queue, {"max_tokens": 99}, who="me")
    assert (after.version, after.max_tokens) == (2, 99)
    (line,) = config.history(client, "regen")
    assert (line["key"], line["was"], line["value"], line["who"]) == (
        "max_tokens",
        "8192",
        "99",
        "me",
    )


def test_setting_what_is_set_changes_nothing(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=1)
    assert config.change(client, opened.queue, {"max_tokens": 8192}, who="me").version == 1


def test_a_pinned_key_is_set_once(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=1)
    config.change(client, opened.queue, {"model": {"name": "a"}}, who="me")
    config.change(client, opened.queue, {"model": {"name": "a"}}, who="me")
    with pytest.raises(errors.RunMismatchError, match="pinned"):
        config.change(client, opened.queue, {"model": {"name": "b"}}, who="me")
    assert config.load(client, "regen")["model"] == {"name": "a"}


def test_changes_by_several_at_once_are_all_in_the_history(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=1)

    def change(n: int) -> None:
        config.change(client, opened.queue, {"max_tokens": 1000 + n}, who=f"w{n}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(6)))
    history = config.history(client, "regen")
    assert [line["version"] for line in history] == list(range(2, 8))
    assert [h["value"] for h in history[:-1]] == [h["was"] for h in history[1:]]


def test_another_halt_rule_judges_other_answers(client: redis.Redis) -> None:
    opened = helpers.make_run(client, size=5)
    helpers.answer(opened, [0, 1, 2])
    assert client.llen(opened.keys.window) == 3
    config.change(client, opened.queue, {"halt_on": {"rate": 0.5}}, who="me")
    assert client.llen(opened.keys.window) == 0
