"""What can be wrong at the start: one line that names the cure, the right exit code, no traceback."""

from pathlib import Path

import pytest

import acceptance_kit as kit
from servers.valkey import Valkey

PASSWORD = "p@ss/w:rd#1"


def refused(ended: kit.Ended, *words: str) -> None:
    """Exactly one line of error, and it says so."""
    lines = [line for line in ended.err.splitlines() if ": error: " in line]
    assert len(lines) == 1, ended
    assert "Traceback" not in ended.err + ended.out
    for word in words:
        assert word in lines[0], ended


@pytest.mark.parametrize(
    "words",
    [
        ("regen-produce", "in.jsonl"),
        ("regen-consume", "--gpu", "0"),
        ("regen-sink", "--to", "out"),
        ("regen-status",),
        ("regen-config", "get"),
        ("regen-requeue", "--failed"),
        ("regen-resume",),
    ],
    ids=lambda words: words[0],
)
def test_no_redis_there(tmp_path: Path, words: tuple[str, ...]) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    with kit.node(tmp_path, "redis://:secret-word@127.0.0.1:1/0") as node:
        ended = node.run(*words, code=2)
    refused(ended, "no Redis answers at 127.0.0.1:1", "--redis")
    assert "secret-word" not in ended.err


def test_a_redis_without_append_only_file(tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    with Valkey(aof=False) as server, kit.node(tmp_path, server.url) as node:
        refused(node.run("regen-produce", "in.jsonl", code=2), "appendonly yes")
        node.run("regen-produce", "in.jsonl", "--allow-volatile-redis")
        refused(node.run("regen-consume", "--gpu", "0", code=2), "appendonly yes")


def test_a_redis_that_evicts(tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    with (
        Valkey("--maxmemory-policy", "allkeys-lru") as server,
        kit.node(tmp_path, server.url) as node,
    ):
        refused(node.run("regen-produce", "in.jsonl", code=2), "maxmemory-policy noeviction")


def test_a_redis_with_a_password_full_of_special_characters(tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    with Valkey("--requirepass", PASSWORD) as server:
        place = f"127.0.0.1:{server.port}/0"
        with kit.node(tmp_path, f"redis://{place}") as node:
            refused(node.run("regen-produce", "in.jsonl", code=2), "password")
        with kit.node(tmp_path, f"redis://:wrong-one@{place}") as node:
            refused(node.run("regen-produce", "in.jsonl", code=2), "password")
        with kit.node(tmp_path, f"redis://:{PASSWORD}@{place}") as node:
            ended = node.run("regen-produce", "in.jsonl", "--debug")
            assert PASSWORD not in ended.err + ended.out
            assert PASSWORD not in node.run("regen-status", "--help").out
            assert node.totals()["pending"] == 1


def test_no_such_run(node: kit.Node) -> None:
    for words in (("regen-status",), ("regen-consume", "--gpu", "0"), ("regen-sink",)):
        refused(node.run(*words, "--run", "other", code=2), "no run 'other'", "regen-produce")


def test_no_input(node: kit.Node) -> None:
    refused(node.run("regen-produce", "nowhere.jsonl", code=2), "nowhere.jsonl")


def test_another_input_under_the_same_name(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 3)
    kit.write_prompts(tmp_path / "other.jsonl", 4)
    node.run("regen-produce", "in.jsonl", "--to", "out")
    ended = node.run("regen-produce", "other.jsonl", "--store", "elsewhere", code=2)
    refused(ended, "--store")
    refused(node.run("regen-produce", "other.jsonl", code=2), "another input", "--run")
    assert node.totals()["input"] == 3


def test_no_destination_yet_and_another_than_the_runs(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 3)
    node.run("regen-produce", "in.jsonl")
    refused(node.run("regen-sink", code=2), "no destination", "--to")
    node.run("regen-config", "set", f"destination={tmp_path / 'out'}")
    refused(node.run("regen-sink", "--to", "elsewhere", code=2), "writes to", "regen-config set")


def test_no_store_where_the_run_says(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 3)
    node.run("regen-produce", "in.jsonl")
    (tmp_path / "regen-data").rename(tmp_path / "moved")
    ended = node.run("regen-consume", "--gpu", "0", "--engine", "http://127.0.0.1:1", code=2)
    refused(ended, "no prompt store", "--store")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("regen-status", "--run", "No Good"), "--run"),
        (("regen-status", "--bogus"), "--bogus"),
        (("regen-consume", "--gpu", "x"), "--gpu"),
        (("regen-consume",), "--gpu"),
        (("regen-consume", "--gpu", "0", "--engine-kind", "vllm"), "--engine-kind"),
        (("regen-consume", "--gpu", "0", "--engine", "localhost:1"), "--engine"),
        (("regen-sink", "--batch-bytes", "lots"), "--batch-bytes"),
        (("regen-sink", "--compress", "rar"), "--compress"),
        (("regen-requeue",), "--failed"),
        (("regen-config", "set", "max_token=3"), "max_token"),
        (("regen-config", "set", "max_tokens=none"), "max_tokens"),
        (("regen-config", "set", "sampling.temperature=-1"), "temperature between"),
        (("regen-config", "set", "sampling.top_p=7"), "top_p between"),
        (("regen-config", "set", "destination=s3:/bucket"), "a slash is missing"),
        (("regen-config", "get", "max_token"), "max_token"),
        (("regen-config", "drop"), "set KEY=VALUE"),
        (("regen-produce", "in.jsonl", "--extra-body", "{"), "--extra-body"),
        (("regen-produce", "in.jsonl", "--redis", "localhost"), "--redis"),
        (("regen-produce", "in.jsonl", "--turns", "none"), "--turns"),
        (("regen-produce", "in.jsonl", "--to", "s3:/bucket"), "a slash is missing"),
        (("regen-run", "in.jsonl", "--out", "out"), "--engine"),
        (("regen-run", "in.jsonl", "--out", "out", "--engine", "localhost:1"), "--engine"),
        (
            ("regen-run", "in.jsonl", "--out", "out", "--engine", "http://h", "--run", "../x"),
            "--run",
        ),
        (("regen-run", "--out", "out"), "--demo"),
        (("regen-run", "--demo"), "--out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage(node: kit.Node, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    node.run("regen-produce", "in.jsonl")
    refused(node.run(*words, code=2), says)


def test_a_pinned_key_can_not_be_changed(node: kit.Node, tmp_path: Path) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    node.run("regen-produce", "in.jsonl")
    refused(node.run("regen-config", "set", "turns=last", code=2), "pinned", "--run")


def test_a_configuration_file_stands_below_flags_and_environment(
    node: kit.Node, tmp_path: Path
) -> None:
    kit.write_prompts(tmp_path / "in.jsonl", 1)
    (tmp_path / "regen.toml").write_text('run = "from-file"\nmax-tokens = 123\nconcurrency = 4\n')
    node.run("regen-produce", "in.jsonl", "--config", "regen.toml")
    assert node.status("from-file")["max_tokens"] == 123
    node.run(
        "regen-produce", "in.jsonl", "--config", "regen.toml", "--run", "from-flag", "--store", "s"
    )
    assert node.status("from-flag")["max_tokens"] == 123
    (tmp_path / "regen.toml").write_text('class = "no_such_class"\n')
    said = node.run("regen-requeue", "--config", "regen.toml", "--run", "from-flag")
    assert "0 prompts" in said.out  # --class alone is enough, and the file gave it
    (tmp_path / "regen.toml").write_text("max-token = 123\n")
    refused(node.run("regen-status", "--config", "regen.toml", code=2), "max-token")


@pytest.mark.parametrize(
    "command",
    ["produce", "consume", "sink", "status", "config", "requeue", "resume", "run"],
)
def test_help_has_examples(node: kit.Node, command: str) -> None:
    out = node.run(f"regen-{command}", "--help").out
    assert f"regen-{command}" in out.partition("Examples:")[2]
