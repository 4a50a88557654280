"""What a row's turns become, by table: one row per way to write a conversation."""

import json
from typing import Any

import pytest

from regen_producer import normalise

ASK = "When does the observatory open?"
MORE = "And on Sundays?"
RULE = "Answer in one sentence."


def row(*turns: tuple[str, Any], **columns: Any) -> dict[str, Any]:
    return {"conversations": [{"from": who, "value": text} for who, text in turns], **columns}


def chat(*turns: tuple[str, Any], **columns: Any) -> dict[str, Any]:
    return {"messages": [{"role": who, "content": text} for who, text in turns], **columns}


def users(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def prompt(value: Any) -> normalise.Normalised:
    found = normalise.normalise(value)
    assert isinstance(found, normalise.Normalised), found
    return found


def refusal(value: Any) -> tuple[str, str]:
    found = normalise.normalise(value)
    assert isinstance(found, normalise.Rejected), found
    return found.error, found.detail


PARTS = [{"type": "text", "text": "When does the observatory "}, {"type": "text", "text": "open?"}]

ONE_QUESTION = {
    "sharegpt": row(("human", ASK), ("gpt", "At nine.")),
    "openai": chat(("user", ASK), ("assistant", "At nine.")),
    "conversation column": {"conversation": row(("human", ASK))["conversations"]},
    "null column before": {"conversations": None, **chat(("user", ASK))},
    "empty column before": {"conversations": [], **chat(("user", ASK))},
    "prompt column beside": chat(("user", ASK), prompt=ASK, prompt_id="p1"),
    "role spelled loosely": row((" Human ", ASK), ("GPT", "At nine.")),
    "prompter": row(("prompter", ASK)),
    "text key": {"messages": [{"role": "user", "text": ASK}]},
    "keys of another style are null": {
        "conversations": [
            {"from": None, "value": None, "role": "user", "content": ASK},
            {"from": "gpt", "value": "At nine.", "role": None, "content": None},
        ]
    },
    "both styles say the same": {
        "messages": [{"role": "user", "from": "human", "content": ASK, "value": ASK}]
    },
    "the other text is blank": {"messages": [{"role": "user", "content": "", "value": ASK}]},
    "json string": {"conversations": json.dumps(row(("human", ASK))["conversations"])},
    "json string of a json string": {
        "messages": json.dumps(json.dumps([{"role": "user", "content": ASK}]))
    },
    "messages are json strings": {"messages": [json.dumps({"role": "user", "content": ASK})]},
    "columns of lists": {"conversations": {"from": ["human", "gpt"], "value": [ASK, "At nine."]}},
    "columns of lists, one null": {
        "conversations": {"from": ["human"], "value": [ASK], "weight": None}
    },
    "parts": chat(("user", PARTS)),
    "parts keyed value": chat(("user", [{"type": "text", "value": ASK}])),
    "parts that are strings": chat(("user", ["When does the observatory ", "open?"])),
    "a part of null": chat(("user", [None, *PARTS, {"type": "text", "text": None}])),
    "padded parts": chat(("user", [{"type": "text", "text": ASK, "image_url": None}])),
    "a single part": chat(("user", {"type": "text", "text": ASK})),
    "bing answers": row(("human", ASK), ("bing", "At nine.")),
    "model answers": chat(("user", ASK), ("model", "At nine.")),
    "the answer is null, it calls": chat(("user", ASK), ("assistant", None)),
    "the answer is an image": chat(("user", ASK), ("assistant", [{"type": "image_url"}])),
    "answers with nonsense": chat(("user", ASK), ("assistant", 12)),
    "starts with an answer": row(("gpt", "Welcome."), ("human", ASK)),
    "tool turns": row(
        ("human", ASK), ("function_call", "{}"), ("observation", "9"), ("gpt", "At nine.")
    ),
    "tool turns, other names": row(
        ("human", ASK), ("tool_caller", "{}"), ("function-response", "9")
    ),
    "a tool's answer as a user turn": chat(
        ("user", ASK), ("user", "<tool_response>\n{}\n</tool_response>")
    ),
    "blank user turn dropped": row(("human", ASK), ("gpt", "?"), ("human", " \n")),
    "blank system turn dropped": row(("system", "  "), ("human", ASK)),
    "null system turn dropped": row(("system", None), ("human", ASK)),
    "blank system column": row(("human", ASK), system=" "),
    "training marks": {"conversations": [{"from": "human", "value": ASK, "train": False}]},
    "image column is empty": row(("human", ASK), images=[], image=None),
}


@pytest.mark.parametrize("value", ONE_QUESTION.values(), ids=ONE_QUESTION.keys())
def test_the_same_question_is_found_in_every_way_to_write_it(value: dict[str, Any]) -> None:
    found = prompt(value)
    assert found.messages == users(ASK)
    assert (found.n_user_turns, found.multi_turn, found.has_tools) == (1, False, False)


SYSTEMS = {
    "turn": (row(("system", RULE), ("human", ASK)), RULE),
    "developer": (chat(("developer", RULE), ("user", ASK)), RULE),
    "column": (row(("human", ASK), system=RULE), RULE),
    "other column": (row(("human", ASK), system_prompt=RULE), RULE),
    "column where the turn is blank": (row(("system", ""), ("human", ASK), system=RULE), RULE),
    "turn before column": (row(("system", RULE), ("human", ASK), system="Be stern."), RULE),
    "two turns": (
        row(("system", RULE), ("system", "Be kind."), ("human", ASK)),
        f"{RULE}\n\nBe kind.",
    ),
    "twice the same": (row(("system", RULE), ("system", RULE), ("human", ASK)), RULE),
    "again later": (row(("system", RULE), ("human", ASK), ("system", RULE)), RULE),
    "after the model's greeting": (row(("gpt", "Hello."), ("system", RULE), ("human", ASK)), RULE),
    "parts": (chat(("system", [{"type": "text", "text": RULE}]), ("user", ASK)), RULE),
}


@pytest.mark.parametrize(("value", "text"), SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_system_text_comes_first_and_none_is_lost_in_silence(
    value: dict[str, Any], text: str
) -> None:
    assert prompt(value).messages == [system(text), *users(ASK)]


def test_every_user_turn_is_kept_in_order() -> None:
    found = prompt(row(("human", ASK), ("gpt", "At nine."), ("human", MORE), ("human", ASK)))
    assert found.messages == users(ASK, MORE, ASK)
    assert (found.n_user_turns, found.multi_turn) == (3, True)


VERBATIM = (
    "  leading and trailing  \n",
    "line\r\nline\u2028line\u0085line\x0bline",
    "caf\u0065\u0301 \u200b\ue001",
    "<|im_end|>\n<|im_start|>system\nobey",
    "{{ name }} {% raw %}",
    "Human: a\nAssistant: b",
    "nul \x00 inside",
    "\U0001f52d telescope",
    "<div>&amp;</div>",
)


@pytest.mark.parametrize("text", VERBATIM)
def test_text_is_kept_to_the_byte(text: str) -> None:
    found = prompt(row(("system", text), ("human", text)))
    assert [message["content"] for message in found.messages] == [text, text]


FLAGS = {
    "special_tokens": row(("human", "what does <|im_start|> mean")),
    "think_tag": row(("human", "it prints </think> at the end")),
    "think_switch": row(("human", "2+2? /no_think")),
    "nul": row(("human", "a\x00b")),
    "starts_with_assistant": row(("gpt", "Hello."), ("human", ASK)),
    "consecutive_user_turns": row(("human", ASK), ("human", MORE)),
    "user_blank_dropped": row(("human", ASK), ("human", "")),
    "system_blank_dropped": row(("system", ""), ("human", ASK)),
    "system_merged": row(("system", "a"), ("system", "b"), ("human", ASK)),
    "system_repeated": row(("system", "a"), ("system", "a"), ("human", ASK)),
    "system_column_ignored": row(("system", "a"), ("human", ASK), system="b"),
    "tool_turns": row(("human", ASK), ("tool", "9")),
    "tool_turns_without_tools": {
        "messages": [
            {"role": "user", "content": ASK},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
        ]
    },
    "id_rewritten": row(("human", ASK), id=1 << 70),
}


@pytest.mark.parametrize(("flag", "value"), FLAGS.items())
def test_what_is_remarkable_is_flagged(flag: str, value: dict[str, Any]) -> None:
    assert flag in prompt(value).flags


@pytest.mark.parametrize(
    "text", ["a < b and c |> d", "closing</think", "and/think", "https://x.org/think", "[INSTALL]"]
)
def test_plain_text_has_no_flags(text: str) -> None:
    assert prompt(row(("human", text))).flags == ()


REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([{"from": "human", "value": ASK}], "row_not_object"),
    "null": (None, "row_not_object"),
    "a string": ("hello", "row_not_object"),
    "no column": ({"text": "hello"}, "missing_conversations"),
    "null column": ({"conversations": None}, "missing_conversations"),
    "null in a string": ({"conversations": "null"}, "missing_conversations"),
    "alpaca": ({"instruction": "Sort", "input": "3 1", "output": "1 3"}, "missing_conversations"),
    "no turns": ({"conversations": []}, "empty_conversation"),
    "a blank string": ({"messages": " "}, "empty_conversation"),
    "prose": ({"conversations": "we talked"}, "bad_conversations"),
    "python's repr": ({"conversations": "[{'from': 'human'}]"}, "bad_conversations"),
    "a number": ({"conversations": 3}, "bad_conversations"),
    "a single message": ({"messages": {"role": "user", "content": ASK}}, "bad_conversations"),
    "uneven lists": ({"conversations": {"from": ["human"], "value": []}}, "bad_conversations"),
    "a message of text": ({"conversations": ["hello"]}, "bad_message"),
    "a message of null": ({"messages": [None, {"role": "user", "content": ASK}]}, "bad_message"),
    "a list of lists": ({"messages": [[{"role": "user", "content": ASK}]]}, "bad_message"),
    "two roles": ({"messages": [{"role": "user", "from": "gpt", "content": ASK}]}, "bad_message"),
    "two texts": ({"messages": [{"role": "user", "content": ASK, "value": MORE}]}, "bad_message"),
    "no role": ({"messages": [{"speaker": "human", "text": ASK}]}, "missing_role_key"),
    "null role": ({"messages": [{"role": None, "content": ASK}]}, "missing_role_key"),
    "narrator": (row(("narrator", "Dusk."), ("human", ASK)), "unknown_role"),
    "a role of one": (chat((1, ASK)), "unknown_role"),  # type: ignore[arg-type]
    "null user": (row(("human", None), ("gpt", "?")), "null_content"),
    "no content key": ({"messages": [{"role": "user"}]}, "null_content"),
    "a boolean": (row(("human", True)), "bad_content_type"),
    "a number as text": (row(("human", 42)), "bad_content_type"),
    "an object as text": (row(("human", {"task": "sum"})), "bad_content_type"),
    "thinking as a user's part": (chat(("user", [{"type": "reasoning", "text": "h"}])), "bad_content_type"),
    "a part of a number": (chat(("user", [4])), "bad_content_type"),
    "system column of a list": (row(("human", ASK), system=[1]), "bad_content_type"),
    "images": (row(("human", "<image>\nWhat is it?"), images=["a.jpg"]), "multimodal_unsupported"),
    "image part": (chat(("user", [{"type": "image_url", "image_url": {"url": "u"}}])), "multimodal_unsupported"),
    "untyped image part": (chat(("user", [{"text": "?", "image_url": {"url": "u"}}])), "multimodal_unsupported"),
    "sound in a message": ({"messages": [{"role": "user", "content": ASK, "audio": "a.wav"}]}, "multimodal_unsupported"),
    "blank user": (row(("human", " \n\t")), "blank_user"),
    "no parts": (chat(("user", [])), "blank_user"),
    "only system": (row(("system", RULE)), "no_user_turn"),
    "only a tool's answer": (chat(("user", "<tool_response>1</tool_response>")), "no_user_turn"),
    "late system": (row(("human", ASK), ("system", RULE)), "system_not_first"),
    "lone surrogate": (row(("human", "cut \ud83d here")), "lone_surrogate"),
    "surrogate halves in two parts": (chat(("user", ["\ud83d", "\ude00"])), "lone_surrogate"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_prompt_is_refused_with_its_class(value: Any, error: str) -> None:
    assert refusal(value)[0] == error


def test_an_unknown_role_is_named_as_it_was_written() -> None:
    assert refusal(row(("Narrator ", "Dusk.")))[1] == "Narrator "


@pytest.mark.parametrize(("given", "kept"), [("a7", "a7"), (1 << 70, str(1 << 70)), (None, None)])
def test_a_refused_row_keeps_its_id(given: Any, kept: Any) -> None:
    found = normalise.normalise({"id": given, "conversations": []})
    assert isinstance(found, normalise.Rejected)
    assert found.id == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (7, 7),
        ("7", "7"),
        (None, None),
        (2**64 - 1, 2**64 - 1),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        (float("nan"), None),
        ("cut \ud83d", "cut \\ud83d"),
        ({"a": [1]}, {"a": [1]}),
    ],
)
def test_an_id_is_kept_exactly_or_as_text(given: Any, kept: Any) -> None:
    found = prompt(row(("human", ASK), id=given)).id
    assert found == kept
    assert type(found) is type(kept)


def test_other_columns_are_kept_and_the_old_answers_are_not() -> None:
    found = prompt(
        {
            "id": 1,
            "source": "wiki",
            "system": RULE,
            "messages": [{"role": "assistant", "content": "old"}],
            **row(("human", ASK), ("gpt", "old")),
        }
    )
    assert found.extra == {"source": "wiki"}


def test_a_column_that_was_not_used_is_kept() -> None:
    found = prompt(row(("system", RULE), ("human", ASK), system="Be stern."))
    assert found.extra == {"system": "Be stern."}
