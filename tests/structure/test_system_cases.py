"""Reported failures of other schedulers, each with the tests here that stand for its kind.

They are listed in `system_cases.txt`; a test that is renamed is renamed there.
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES: dict[str, list[str]] = {}
for line in Path(__file__).with_name("system_cases.txt").read_text(encoding="utf-8").splitlines():
    if re.match(r"S\d\d ", line):
        CASES[line[:3]] = []
    elif line.startswith("    "):
        CASES[list(CASES)[-1]].append(line.strip())


def test_all_cases_of_the_scanner_are_listed() -> None:
    assert list(CASES) == [
        "S01",
        "S03",
        "S05",
        "S07",
        "S08",
        "S10",
        "S12",
        "S14",
        "S16",
        "S18",
        "S20",
        "S22",
    ]


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_its_tests(case: str) -> None:
    assert CASES[case]
    for test in CASES[case]:
        file, _, name = test.partition("::")
        source = (TESTS / file).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{case}: no {test}"
