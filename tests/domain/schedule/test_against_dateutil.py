"""Differential: recurrence rules against python-dateutil walking from the very first period.

The schedule asks dateutil for single months and years and does the stepping, the weeks, the days
and ``BYSETPOS`` itself; dateutil alone does it all, slowly. In UTC both have to agree. Two rules
differ:

- ``BYWEEKNO`` without a day: RFC 5545 takes what is left out from DTSTART, so the weekday is the
  anchor's; dateutil takes all seven days of the week.
- The weeks 52 and 53 (and -52, -53) where they cross the year: dateutil numbers the first days of
  2011 as week 53, though 2010 has 52. Ours are compared with ISO 8601 in the standard library.
"""

import random
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Calendar

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def some(rng: random.Random, values: list[int], most: int = 3) -> str:
    return ",".join(str(value) for value in sorted(rng.sample(values, rng.randint(1, most))))


def rule(rng: random.Random, frequency: str) -> str:
    parts = [f"FREQ={frequency}"]
    if rng.random() < 0.5:
        parts.append(f"INTERVAL={rng.choice((2, 2, 3, 4, 5, 13))}")
    if rng.random() < 0.4:
        parts.append(f"BYMONTH={some(rng, list(range(1, 13)), 4)}")
    parts += day_parts(rng, frequency)
    if rng.random() < 0.3:
        parts.append(f"BYHOUR={some(rng, list(range(24)))}")
    if rng.random() < 0.2:
        parts.append(f"BYMINUTE={some(rng, list(range(60)), 2)}")
    if rng.random() < 0.2:
        parts.append(f"WKST={rng.choice(WEEKDAYS)}")
    if rng.random() < 0.25 and any(part.startswith("BY") for part in parts):
        parts.append(f"BYSETPOS={some(rng, [1, 2, 3, -1, -2], 2)}")
    return ";".join(parts)


def day_parts(rng: random.Random, frequency: str) -> list[str]:
    parts: list[str] = []
    numbered = frequency in {"MONTHLY", "YEARLY"}
    if frequency == "YEARLY" and rng.random() < 0.2:
        parts.append(f"BYYEARDAY={some(rng, [1, 60, 100, 200, 366, -1, -100])}")
    elif frequency == "YEARLY" and rng.random() < 0.25:
        days = ",".join(rng.sample(WEEKDAYS, 2))
        return [f"BYWEEKNO={some(rng, [1, 2, 20, -1, -10])}", f"BYDAY={days}"]
    if frequency != "WEEKLY" and rng.random() < 0.4:
        parts.append(f"BYMONTHDAY={some(rng, [1, 2, 13, 15, 28, 29, 30, 31, -1, -2, -31])}")
    if rng.random() < 0.5:
        days = rng.sample(WEEKDAYS, rng.randint(1, 3))
        nth = rng.choice(["", "1", "2", "-1", "-2", "4"]) if numbered else ""
        parts.append("BYDAY=" + ",".join(nth + day for day in days))
    return parts


@pytest.mark.parametrize("frequency", ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
def test_generated_rules(frequency: str) -> None:
    rng = random.Random(frequency)
    compared = 0
    for _ in range(400):
        text = rule(rng, frequency)
        anchor = datetime(2023, 1, 1) + timedelta(hours=rng.randint(0, 30_000))  # noqa: DTZ001
        after = anchor + timedelta(hours=rng.randint(-100, 30_000))
        try:
            schedule = Calendar(text, "UTC", anchor=anchor)
        except InvalidSchedule as refusal:
            # dateutil would search to the year 9999, for minutes; the laws of such rules are
            # tested one by one elsewhere
            assert "never fires" in str(refusal), text  # noqa: PT017
            continue
        fires = [
            fire.at.replace(tzinfo=None) for fire in schedule.upcoming(after.replace(tzinfo=UTC), 8)
        ]
        if fires[-1].year > 2040:
            continue  # dateutil takes seconds to get there
        expected = islice(rrulestr(text, dtstart=anchor).xafter(after), 8)
        assert fires == list(expected), f"{text} from {anchor} after {after}"
        compared += 1
    assert compared > 200


def test_a_week_number_without_a_day_takes_the_weekday_of_the_anchor() -> None:
    schedule = Calendar("FREQ=YEARLY;BYWEEKNO=20", "UTC", anchor="2027-01-06T09:00:00")
    fires = schedule.upcoming(datetime(2027, 1, 1, tzinfo=UTC), 2)
    assert [fire.local.strftime("%a %F %H") for fire in fires] == [
        "Wed 2027-05-19 09",
        "Wed 2028-05-17 09",
    ]
