from regen_common.queue.shapes import CategoryBooks, Counted
from regen_common.run import books


def counted(*, redo: int = 0, stream: int = 0, **chat: int) -> books.Books:
    values = {
        "plan": 10,
        "enqueued": 10,
        "queued": 0,
        "leased": 0,
        "failed": 0,
        "done": 0,
        "failed_redo": 0,
    }
    rows = [
        CategoryBooks("chat", **(values | chat)),
        CategoryBooks("tools", **dict.fromkeys(values, 0)),
    ]
    return books.from_counted(
        Counted(
            input=12, rejected=2, stream=stream, redo=redo, open_intents=0, suspended=False,
            halt=None, categories=rows,
        )
    )  # fmt: skip


def test_books_balance_while_prompts_are_spread_over_their_places() -> None:
    now = counted(enqueued=8, queued=3, leased=2, failed=1, done=1, stream=1)
    assert (now.pending, now.failed, now.done, now.unaccounted) == (8, 1, 1, 0)
    assert not now.over


def test_a_prompt_in_no_place_is_unaccounted() -> None:
    assert counted(queued=3, leased=2, failed=1, done=1, stream=1).unaccounted == 2


def test_a_prompt_asked_again_stays_done() -> None:
    now = counted(queued=1, done=10, redo=1)
    assert (now.done, now.pending, now.unaccounted) == (10, 0, 0)
    assert not now.over


def test_a_prompt_whose_redo_failed_is_done_and_not_failed() -> None:
    now = counted(done=10, failed=1, failed_redo=1, redo=1)
    assert (now.done, now.failed, now.pending, now.unaccounted) == (10, 0, 0, 0)
    assert now.over
