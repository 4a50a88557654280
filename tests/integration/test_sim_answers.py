"""Whose answer an answer is: a pure function of the prompt, with ids that can be gone on from."""

import contextlib
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from regen_common.store import schema
from regen_sim import answers, prompts
from regen_sim import vocabulary as v
from regen_sim.process import Sim

RAW = {"separate_reasoning": False, "skip_special_tokens": False, "no_stop_trim": True}
FUNCTION = {
    "name": "find_café",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    },
}
TOOLS = [{"type": "function", "function": FUNCTION}]


def messages(text: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]


def raw_text(answer: answers.Answer) -> str:
    return f"{answer.reasoning}\n</think>\n\n{answer.content}<|im_end|>"


@pytest.fixture(scope="module")
def sims() -> Iterator[dict[str, Sim]]:
    flags = {"think_open": True, "reasoning_parser": "qwen3"}
    with contextlib.ExitStack() as stack:
        versions = ("0.5.11", "0.5.23")
        yield {name: stack.enter_context(Sim(version=name, **flags)) for name in versions}


@pytest.mark.parametrize("version", ["0.5.11", "0.5.23"])
@pytest.mark.parametrize("tools", [None, TOOLS])
def test_the_raw_answer_is_the_expected_one(
    sims: dict[str, Sim], version: str, tools: list[Any] | None
) -> None:
    for number in range(20):
        asked = messages(f"Question {number}? 東京 🙂 \u2028")
        body = sims[version].ask(asked, **RAW, **({"tools": tools} if tools else {})).body
        want = answers.expected(asked, tools)
        assert body["choices"][0]["message"]["content"] == raw_text(want)
        assert body["usage"]["completion_tokens"] == want.tokens
        assert want.content.startswith(f"answer {schema.prompt_digest(asked, tools)[:16]}:")


def test_answers_differ_by_prompt_by_tools_and_by_seed() -> None:
    one, other = messages("One?"), messages("Other?")
    made = [
        answers.expected(one),
        answers.expected(other),
        answers.expected(one, TOOLS),
        answers.expected(one, seed=7),
    ]
    assert len({answer.content for answer in made}) == 4
    assert answers.expected(one) == answers.expected(messages("One?"), [])


def test_lengths_go_from_some_tens_to_a_few_hundred_tokens() -> None:
    tokens = [answers.expected(messages(str(number))).tokens for number in range(300)]
    assert 20 < min(tokens) < 80
    assert 300 < max(tokens) < 600
    assert 150 < statistics.mean(tokens) < 350


def test_about_half_of_the_prompts_with_tools_get_a_call_of_the_first_tool() -> None:
    made = [answers.expected(messages(str(number)), TOOLS).content for number in range(200)]
    calls = [content for content in made if "<tool_call>" in content]
    assert 60 < len(calls) < 140
    assert all("\n<function=find_café>\n<parameter=city>\ncity " in call for call in calls)
    assert all(call.endswith("</parameter>\n</function>\n</tool_call>") for call in calls)


def test_a_cap_cuts_text_and_ids_at_the_same_place(sims: dict[str, Sim]) -> None:
    asked = messages("Where is the cut?")
    whole = sims["0.5.23"].ask(asked, return_token_ids=True, **RAW).body["choices"][0]
    ids = whole["response_token_ids"]
    for tokens in (1, 2, len(ids) // 2, len(ids) - 1, len(ids)):
        cut = sims["0.5.23"].ask(asked, return_token_ids=True, max_tokens=tokens, **RAW)
        choice = cut.body["choices"][0]
        assert choice["response_token_ids"] == ids[:tokens]
        assert choice["message"]["content"] == v.decode(ids[:tokens])
        assert choice["finish_reason"] == ("stop" if tokens == len(ids) else "length")


@pytest.mark.parametrize("tools", [None, TOOLS])
def test_a_cut_answer_goes_on_from_its_ids(sims: dict[str, Sim], tools: list[Any] | None) -> None:
    sim, asked = sims["0.5.23"], messages("Go on from ids?")
    fields = {"tools": tools} if tools else {}
    cut = sim.ask(asked, return_token_ids=True, max_tokens=15, **RAW, **fields).body["choices"][0]
    ids = cut["prompt_token_ids"] + cut["response_token_ids"]
    values = {"skip_special_tokens": False, "no_stop_trim": True, "max_new_tokens": 2000}
    rest = sim.send("POST", "/generate", {"input_ids": ids, "sampling_params": values}).body
    whole = cut["message"]["content"] + rest["text"]
    assert whole == raw_text(answers.expected(asked, tools))
    assert rest["meta_info"]["prompt_tokens"] == len(ids)
    by_chat = sim.ask(asked, input_ids=ids, **RAW, **fields).body["choices"][0]
    assert by_chat["message"]["content"] == rest["text"]


@pytest.mark.parametrize("version", ["0.5.11", "0.5.23"])
def test_a_cut_answer_goes_on_from_its_text(sims: dict[str, Sim], version: str) -> None:
    sim, asked = sims[version], messages("Go on from text?")
    cut = sim.ask(asked, max_tokens=15, **RAW).body["choices"][0]["message"]["content"]
    begun = [*asked, {"role": "assistant", "content": cut}]
    rest = sim.ask(begun, continue_final_message=True, **RAW).body["choices"][0]
    assert cut + rest["message"]["content"] == raw_text(answers.expected(asked))


@pytest.mark.parametrize("opening", ["open", "closed", "plain"])
@pytest.mark.parametrize("has_tools", [False, True])
def test_a_prompt_is_known_again_by_its_ids(opening: prompts.Opening, *, has_tools: bool) -> None:
    prompt = answers.canonical(messages("Known?"), None)
    digest = answers.digest_of(prompt)
    ids = prompts.ids_of(prompt, digest, opening, has_tools=has_tools)
    known = prompts.recognise([*ids, 1000, 1001])
    assert known is not None
    assert (known.digest, known.has_tools) == (digest, has_tools)
    assert (known.opening, known.so_far) == (opening, (1000, 1001))
    assert len(ids) == prompts.count(prompt, opening)
    assert max(ids) < v.VOCABULARY_SIZE


def test_foreign_ids_are_no_prompt_of_ours() -> None:
    assert prompts.recognise([]) is None
    assert prompts.recognise(list(range(100))) is None
    assert prompts.recognise([v.IM_START, 872, 198, 3838, 374, 220, 17, v.IM_END, 198]) is None
