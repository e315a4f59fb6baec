"""What the walk takes for granted about zones, and rules that no zone happens to use today."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from horolog.domain.schedule import zone_names
from horolog.domain.schedule.clock_changes import clock_changes
from horolog.domain.schedule.posix_rule import yearly_rule


def test_no_zone_undoes_a_change_before_its_gap_or_fold_is_over() -> None:
    """No local time is shown three times, and none in a gap is shown after all."""
    for name in zone_names():
        stretches = clock_changes(name, 0).stretches
        for before, after in pairwise(stretches[:-1]):
            shown_until = max(before.finish, after.begin)
            following = stretches[stretches.index(after) + 1]
            assert min(following.begin, after.finish) >= shown_until, f"{name} at {after.start}"


@pytest.mark.parametrize(
    ("footer", "year", "days"),
    [
        ("AAA0BBB,J60/0,J300/0", 2027, ["03-01", "10-27"]),
        ("AAA0BBB,J60/0,J300/0", 2028, ["03-01", "10-27"]),  # J never counts 29 February
        ("AAA0BBB,59/0,299/0", 2027, ["03-01", "10-27"]),
        ("AAA0BBB,59/0,299/0", 2028, ["02-29", "10-26"]),
        ("AAA0BBB-1:30:15,M4.5.0/-1,M10.1.6/25", 2027, ["04-24", "10-03"]),
    ],
)
def test_rules_in_all_forms_of_the_standard(footer: str, year: int, days: list[str]) -> None:
    rule = yearly_rule(footer)
    assert rule is not None
    local = [
        datetime.fromtimestamp(at + before, UTC)
        for (at, _), before in zip(
            rule.changes(year), (rule.standard_s, rule.summer_s), strict=True
        )
    ]
    assert [f"{moment:%m-%d}" for moment in local] == days


def test_a_rule_that_cannot_be_read_is_an_error_and_none_is_none() -> None:
    assert yearly_rule("") is None
    with pytest.raises(ValueError, match="not a POSIX"):
        yearly_rule("Mars/Olympus")
