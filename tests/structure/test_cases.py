"""The tests that ``tests/cases.md`` names are there."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS / "cases.md").read_text())


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_a_test_that_stands_against_a_case_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (TESTS / file).read_text()
