"""Nothing that a user can type takes long: it is answered or refused in milliseconds.

CPU time is measured, so that a busy machine does not fail the test, and the best of three runs.
"""

import gc
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import (
    Calendar,
    Cron,
    Every,
    HolidayCalendar,
    Once,
    Schedule,
    Union,
)
from horolog.domain.schedule.calendar import recurring_times
from horolog.domain.schedule.cron_plan import cron_plan

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
LIMIT_S = 0.05

every_minute = ",".join(map(str, range(60)))
closures = [date(2027, 1, 1) + timedelta(n) for n in range(1000)]

EXPRESSIONS = [
    "* " * 100_000,
    "1," * 100_000 + "1 * * * *",
    "1" * 100_000 + " * * * *",
    "*/" * 1000 + " * * * *",
    "1-" * 100 + "2 * * * *",
    f"{every_minute} * * * *",
    "1,2,3,4,5,6,7,8,9 " * 5,
    "0 0 29 2 *",
    "0 0 29 2 1#5",
    "0 0 31 4,6,9,11 *",
    "0 0 30,31 2 */7",
    "59 59 23 31 12 *",
    "* * * * * *",
    "@" * 200,
    "H(0-59)/1 H H H H",
    "\x00 * * * *",
    "０ ９ * * *",
    "0 0 L,LW,L-1,L-2,1W,15W * 1#1,2#2,3#3,4#4,5#5,6L,0L",
    "0\n9 * * *",
]
RULES = [
    "FREQ=DAILY;" * 10_000,
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;INTERVAL=1000;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=WEEKLY;INTERVAL=1000;BYMONTH=2;BYDAY=MO",
    "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=300",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=MONTHLY;INTERVAL=12;BYMONTH=1",
    "FREQ=YEARLY;INTERVAL=1000",
    "FREQ=YEARLY;BYYEARDAY=366;BYWEEKNO=20",
    "FREQ=YEARLY;BYDAY=53MO",
    "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR="
    + ",".join(map(str, range(24)))
    + f";BYMINUTE={every_minute};BYSETPOS=-1,366",
    "FREQ=DAILY;COUNT=1000000000",
    "FREQ=DAILY;UNTIL=99991231T235959Z",
]


def cpu_s(run: Callable[[], object]) -> float:
    best = float("inf")
    gc.disable()
    try:
        for _ in range(3):
            cron_plan.cache_clear()
            recurring_times.cache_clear()
            begun = time.process_time()
            run()
            best = min(best, time.process_time() - begun)
    finally:
        gc.enable()
    return best


def asked(make: Callable[[], Any]) -> Callable[[], object]:
    def run() -> object:
        try:
            return make().next_after(NEW_YEAR)
        except InvalidSchedule:
            return None

    return run


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda text: repr(text[:40]))
@pytest.mark.parametrize("zone", ["America/New_York", "Africa/Casablanca"])
def test_a_cron_expression_is_answered_or_refused_at_once(expression: str, zone: str) -> None:
    for day_rule in ("crontab", "and", "or"):
        assert cpu_s(asked(lambda rule=day_rule: Cron(expression, zone, day_rule=rule))) < LIMIT_S


@pytest.mark.parametrize("rule", RULES, ids=lambda text: repr(text[:60]))
def test_a_recurrence_rule_is_answered_or_refused_at_once(rule: str) -> None:
    assert cpu_s(asked(lambda: Calendar(rule, "Europe/Berlin"))) < LIMIT_S


@pytest.mark.parametrize("name", ["x" * 1_000_000, "Amerika/Nuw_Yorck", "a/b/c/d/e/f", "\ud800"])
def test_a_zone_name_is_refused_at_once(name: str) -> None:
    assert cpu_s(asked(lambda: Cron("0 9 * * *", name))) < LIMIT_S


@pytest.mark.parametrize("roll", ["drop", "next", "previous"])
@pytest.mark.parametrize("expression", ["* * * * * *", "* * * * *", "0 9 * * *", "0 9 29 2 *"])
def test_long_closures_are_passed_at_once(expression: str, roll: str) -> None:
    works = HolidayCalendar("works", "1", closures, weekdays_off=["sat", "sun"])
    assert cpu_s(asked(lambda: Cron(expression, "UTC", holidays=works, roll=roll))) < LIMIT_S  # pyright: ignore[reportArgumentType]


def test_seconds_that_roll_are_asked_late_in_a_working_day_at_once() -> None:
    weekend = HolidayCalendar("weekend", "1", weekdays_off=["sat", "sun"])
    schedule = Cron("* * * * * *", "UTC", holidays=weekend, roll="next")
    late = datetime(2027, 1, 4, 23, 59, 58, tzinfo=UTC)  # a Monday
    assert cpu_s(lambda: schedule.next_after(late)) < LIMIT_S


def test_a_schedule_that_excludes_itself_ends_at_once() -> None:
    saturdays_off = HolidayCalendar("weekend", "1", weekdays_off=["sat"])
    schedule = Cron("0 0 * * 6", "Europe/Berlin", holidays=saturdays_off)
    assert cpu_s(lambda: schedule.next_after(NEW_YEAR)) < LIMIT_S


def test_many_exclusions_are_passed_at_once() -> None:
    assert cpu_s(asked(lambda: Cron("* * * * * *", "UTC", exclude=closures))) < LIMIT_S


def test_the_widest_union_is_answered_at_once() -> None:
    members = [Cron(f"{n} 0 29 2 *", "Europe/Berlin") for n in range(31)]
    assert cpu_s(asked(lambda: Union([*members, Every(0.1, NEW_YEAR)]))) < LIMIT_S


def test_a_million_exclusions_dates_or_members_are_refused_at_once() -> None:
    million = ["2027-01-01"] * 1_000_000
    assert cpu_s(asked(lambda: Cron("* * * * *", "UTC", exclude=million))) < LIMIT_S
    assert cpu_s(asked(lambda: Union([Every(60)] * 1_000_000))) < LIMIT_S
    with pytest.raises(InvalidSchedule, match="dates"):
        HolidayCalendar("x", "1", million)


off = HolidayCalendar("x", "1", ["2027-01-01"], ["sat"])
KINDS: list[Schedule] = [
    Cron("0 9 * * *", "Pacific/Kiritimati"),
    Cron("0 9 * * *", "Pacific/Kiritimati", exclude=["9999-12-28"], holidays=off),
    Cron("0 9 * * *", "Etc/GMT+12", holidays=off, roll="next"),
    Cron("0 9 * * *", "Etc/GMT+12", holidays=off, roll="previous"),
    Every(3600.5, NEW_YEAR, zone="Pacific/Kiritimati", exclude=["9999-12-28"]),
    Every(86_400, NEW_YEAR, zone="Etc/GMT+12", keep_local_hour=True),
    Calendar("FREQ=DAILY", "Pacific/Kiritimati", anchor=NEW_YEAR),
    Calendar("FREQ=YEARLY;INTERVAL=1000", "Etc/GMT+12"),
    Once(NEW_YEAR),
]


@pytest.mark.parametrize("schedule", KINDS)
@pytest.mark.parametrize(
    "after",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime(9999, 12, 20, tzinfo=UTC),
    ],
)
def test_the_ends_of_the_calendar_are_no_trap(schedule: Schedule, after: datetime) -> None:
    fires = schedule.upcoming(after, 20)
    assert all(a.at < b.at for a, b in pairwise(fires))
    assert not list(schedule.omitted(after, after))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Once("0001-01-01T00:00:00", "Asia/Tokyo"),
        lambda: Once("9999-12-31T23:59:59Z", "Asia/Tokyo"),
        lambda: Once.in_seconds(1e300, NEW_YEAR),
        lambda: Once.in_seconds(float("nan"), NEW_YEAR),
        lambda: Every(60, "0001-01-01T00:00:00+14:00"),
        lambda: Cron("* * * * *", "UTC", start="9999-12-31T23:00:00-05:00"),
        lambda: Cron("* * * * *", "UTC", exclude="0001-01-01T00:00:00+14:00"),
        lambda: Calendar("FREQ=DAILY", "UTC", anchor="0001-01-01T00:00:00"),
        lambda: Calendar("FREQ=DAILY;UNTIL=99991231T235959Z", "UTC"),
        lambda: Cron("H * * * *", "UTC", hash_key="x" * 5000),
    ],
)
def test_what_leads_out_of_the_calendar_is_refused(make: Callable[[], Schedule]) -> None:
    with pytest.raises(InvalidSchedule):
        make()


@pytest.mark.parametrize("year", [1, 1800, 2099, 2101, 9000, 9999])
def test_any_year_is_answered_at_once(year: int) -> None:
    after = datetime(year, 6, 1, tzinfo=UTC)
    schedule = Cron("0 9 29 2 *", "Europe/Berlin")
    assert cpu_s(lambda: schedule.next_after(after)) < LIMIT_S
