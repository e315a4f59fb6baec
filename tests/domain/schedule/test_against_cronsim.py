"""Differential: generated expressions against cronsim, an independent reading of Debian's cron.

Where the two differ, a rule says so and why:

- Six fields: cronsim leaves them without any treatment of clock changes. They are compared in UTC.
- A range of one value with a step (``3-3/3``): crontab(5) applies the step inside of the range,
  which leaves 3; cronsim reads it like ``3/3``. They are not generated; ours is tested below.
- Days that never come (``LW`` that has to be a Sunday): cronsim checks only lists whose least day
  is 30 or 31, and otherwise gives up after some decades; both are a refusal here.
"""

import random
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Cron
from horolog.domain.schedule.zone_data import zone

ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Beirut",
    "Africa/Cairo",
    "America/Nuuk",
    "Antarctica/Troll",
    "America/St_Johns",
    "Pacific/Chatham",
    "Asia/Kolkata",
    "UTC",
)


def number_item(rng: random.Random, low: int, high: int) -> str:
    first = rng.randint(low, high - 1)
    last = rng.randint(first + 1, high)
    step = rng.randint(1, max(1, min(15, high)))
    return rng.choice(
        [str(first), str(first), f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}"]
    )


def number_field(rng: random.Random, low: int, high: int, star: float) -> str:
    if rng.random() < star:
        return "*"
    return ",".join(number_item(rng, low, high) for _ in range(rng.choice((1, 1, 1, 2))))


def expression(rng: random.Random) -> str:
    day = number_field(rng, 1, 31, 0.5)
    weekday = number_field(rng, 0, 7, 0.5)
    if rng.random() < 0.2:
        day = rng.choice(["L", "LW", "L,1", "15,L"])
    if rng.random() < 0.2:
        weekday = rng.choice(["5L", "7L", "1#1", "3#2,3#4", "0#5", "sun", "mon-fri", "6-7"])
    return " ".join(
        (
            number_field(rng, 0, 59, 0.2),
            number_field(rng, 0, 23, 0.3) if rng.random() < 0.5 else number_field(rng, 0, 3, 0.2),
            day,
            number_field(rng, 1, 12, 0.7),
            weekday,
        )
    )


def compare(tried: str, name: str, after: datetime) -> None:
    try:
        expected = theirs(tried, zone(name), after, 6)
    except CronSimError:
        expected = []
    if expected:
        fires = ours(tried, name, after, len(expected))
        assert fires == expected, f"{tried!r} in {name} after {after}"
    else:
        with pytest.raises(InvalidSchedule, match="never fires"):
            Cron(tried, name)


def theirs(expression: str, here: ZoneInfo, after: datetime, n: int) -> list[datetime]:
    fires = CronSim(expression, after.astimezone(here))
    return [fire.astimezone(UTC) for fire in islice(fires, n)]


def ours(expression: str, name: str, after: datetime, n: int) -> list[datetime]:
    return [fire.at for fire in Cron(expression, name).upcoming(after, n)]


@pytest.mark.parametrize("name", ZONES)
def test_generated_expressions_around_the_shifts_of_a_zone(name: str) -> None:
    rng = random.Random(name)
    starts = [
        datetime(2027, month, day, 20, 17, tzinfo=UTC)
        for month, day in ((3, 12), (3, 26), (4, 2), (4, 28), (9, 3), (10, 1), (10, 28), (11, 5))
    ]
    for start in starts:
        for _ in range(20):
            tried = expression(rng)
            after = start + timedelta(minutes=rng.randint(0, 3000))
            compare(tried, name, after)


def test_a_range_of_one_value_ignores_its_step() -> None:
    after = datetime(2027, 1, 1, tzinfo=UTC)
    assert ours("0 3-3/3 * * *", "UTC", after, 9) == ours("0 3 * * *", "UTC", after, 9)


def test_generated_expressions_with_seconds() -> None:
    rng = random.Random(6)
    for _ in range(150):
        tried = f"{number_field(rng, 0, 59, 0.3)} {expression(rng)}"
        after = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randint(0, 40_000_000))
        compare(tried, "UTC", after)
