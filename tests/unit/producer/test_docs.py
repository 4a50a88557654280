"""docs/input-formats.md says what the code does."""

import re
from pathlib import Path

import orjson
import pytest

from regen_producer import normalise, rejection, roles, tool_text

PAGE = (Path(__file__).parents[3] / "docs" / "input-formats.md").read_text("utf-8")
EXAMPLES = [
    line
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_is_accepted(line: str) -> None:
    assert isinstance(normalise.normalise(orjson.loads(line)), normalise.Normalised)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


def test_every_rejection_class_has_its_row_and_no_other_has_one() -> None:
    section = PAGE.split("## Why rows are rejected")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == rejection.CLASSES


def test_every_detector_has_its_row_with_the_right_rule_for_users() -> None:
    section = PAGE.split("## Tools")[1].split("\n## ")[0]
    rules = {"yes": "always", "no": "never", "with words that offer it": "offered"}
    found = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", section, re.MULTILINE)
    assert {name: rules[rule] for name, rule in found} == {
        detector.name: detector.user for detector in tool_text.DETECTORS
    }


def test_every_role_name_is_listed() -> None:
    section = PAGE.split("### Who speaks")[1].split("\n### ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| (`.*) \|$", section, re.MULTILINE)
    listed = {
        name: role.replace(" ", "_")
        for role, names in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert listed == roles.ROLES
