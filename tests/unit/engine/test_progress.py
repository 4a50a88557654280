"""Progress out of metrics pages."""

from pathlib import Path

import orjson
import pytest

from regen_consumer.engine import progress

HERE = Path(__file__).parent
TWO_RANKS = (HERE / "recorded_metrics_dp2.txt").read_text()
PAGES = orjson.loads((HERE / "recorded_pages.json").read_bytes())

LLAMA = """
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 33
llamacpp:tokens_predicted_total 5
llamacpp:requests_processing 1
llamacpp:requests_deferred 2
"""
VLLM = """
vllm:prompt_tokens_total{engine="0",model_name="m{1}"} 1.5e+02
vllm:generation_tokens_total{engine="0",model_name="m{1}"} 40.0
vllm:num_requests_running{engine="0",model_name="m{1}"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m{1}"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="m{1}"} 0.25
"""


def test_all_ranks_of_sglang_are_summed_and_the_counters_that_move_meanwhile_are_used():
    found = progress.of_metrics(TWO_RANKS)
    assert found.generation_tokens == 69 + 66  # realtime, not the 18 of finished requests
    assert found.prompt_tokens == 31 + 17 + 25 + 14
    assert found.tokens == 222
    assert (found.running, found.waiting) == (3, 0)
    assert found.tokens_per_s == pytest.approx(1.653, abs=0.001)
    assert found.accept_length is None  # no speculation shows as 0


def test_without_realtime_counters_those_of_finished_requests_are_used():
    page = "\n".join(line for line in TWO_RANKS.splitlines() if "realtime" not in line)
    found = progress.of_metrics(page)
    assert (found.prompt_tokens, found.generation_tokens) == (26, 18)


def test_the_accept_length_is_the_mean_over_ranks_that_speculate():
    page = TWO_RANKS.replace('spec_accept_length{dp_rank="1"', 'spec_accept_length{x="1"')
    lines = [
        line.rsplit(" ", 1)[0] + " 3.25"
        if line.startswith("sglang:spec_accept_length{x=")
        else line
        for line in page.splitlines()
    ]
    assert progress.of_metrics("\n".join(lines)).accept_length == 3.25


def test_llama_cpp_s_names_are_known():
    found = progress.of_metrics(LLAMA)
    assert (found.prompt_tokens, found.generation_tokens) == (33, 5)
    assert (found.running, found.waiting, found.kv_usage) == (1, 2, None)


def test_vllm_s_names_are_known_whatever_stands_in_labels():
    found = progress.of_metrics(VLLM)
    assert (found.tokens, found.running, found.kv_usage) == (190, 3, 0.25)


@pytest.mark.parametrize("page", ["", "<html></html>", "go_gc_cycles_total 5\n"])
def test_a_page_that_shows_none_of_it_is_unknown(page):
    assert progress.of_metrics(page) is None


@pytest.mark.parametrize("version", ["v0.5.11-parsers", "v0.5.23"])
def test_loads_show_queues_but_no_counters(version):
    found = progress.of_loads(PAGES[version]["loads"])
    assert (found.running, found.waiting, found.tokens) == (0, 0, None)


@pytest.mark.parametrize("page", [None, {}, {"loads": 5}, []])
def test_odd_loads_are_unknown(page):
    assert progress.of_loads(page) is None
