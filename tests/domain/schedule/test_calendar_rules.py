"""Recurrence rules in a zone: what they mean, what is refused, and that they do not drift."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Calendar

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


def local(rule: str, n: int, zone: str = "America/New_York", **options: str) -> list[str]:
    fires = Calendar(rule, zone, **options).upcoming(NEW_YEAR, n)  # pyright: ignore[reportArgumentType]
    return [fire.local.strftime("%a %m-%d %H:%M%z") for fire in fires]


def test_the_last_friday_of_the_month() -> None:
    assert local("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9", 4) == [
        "Fri 01-29 09:00-0500",
        "Fri 02-26 09:00-0500",
        "Fri 03-26 09:00-0400",
        "Fri 04-30 09:00-0400",
    ]


def test_every_second_tuesday_keeps_its_distance_across_years() -> None:
    schedule = Calendar("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "UTC", anchor="2026-12-01T08:00:00")
    days = [fire.local.date() for fire in schedule.upcoming(NEW_YEAR, 60)]
    assert days[0].isoformat() == "2027-01-12"
    steps = {later - day for day, later in pairwise(days)}
    assert steps == {timedelta(days=14)}


def test_the_last_day_of_the_month_does_not_drift() -> None:
    given = local("FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=18", 4, "UTC")
    assert [text[4:9] for text in given] == ["01-31", "02-28", "03-31", "04-30"]


def test_the_thirty_first_is_not_clamped_in_short_months() -> None:
    given = local("FREQ=MONTHLY", 3, "UTC", anchor="2027-01-31T06:00:00")
    assert given == ["Sun 01-31 06:00+0000", "Wed 03-31 06:00+0000", "Mon 05-31 06:00+0000"]


def test_gaps_and_folds_are_chosen_as_for_cron() -> None:
    daily = "FREQ=DAILY;BYMONTH=3,11;BYMONTHDAY=14,7;BYHOUR=2,1;BYMINUTE=30"
    assert local(daily, 4)[2:4] == ["Sun 03-14 01:30-0500", "Sun 03-14 03:00-0400"]
    assert "Sun 03-14 03:00-0400" not in local(daily, 8, gap="skip")
    passes = [text for text in local(daily, 20, fold="both") if text.startswith("Sun 11-07 01:30")]
    assert passes == ["Sun 11-07 01:30-0400", "Sun 11-07 01:30-0500"]


def test_count_becomes_the_limit_and_until_the_end() -> None:
    counted = Calendar("FREQ=DAILY;COUNT=3", "UTC", anchor="2027-01-05T00:00:00")
    assert counted.limit == 3
    assert counted.rrule == "FREQ=DAILY"
    assert [fire.at.day for fire in counted.upcoming(NEW_YEAR, 9)] == [5, 6, 7]
    until = Calendar("RRULE:FREQ=DAILY;UNTIL=20270103", "America/New_York")
    assert until.end == datetime(2027, 1, 4, 4, 59, 59, tzinfo=UTC)
    assert [fire.local.day for fire in until.upcoming(NEW_YEAR, 9)] == [1, 2, 3]


def test_until_in_utc_is_an_instant_and_the_earlier_end_holds() -> None:
    schedule = Calendar("FREQ=DAILY;UNTIL=20270103T120000Z", "UTC", end="2028-01-01T00:00:00Z")
    assert schedule.end == datetime(2027, 1, 3, 12, tzinfo=UTC)


def test_nothing_fires_before_the_anchor() -> None:
    given = local("FREQ=DAILY;BYHOUR=6,18", 3, "UTC", anchor="2027-01-04T09:00:00")
    assert given == ["Mon 01-04 18:00+0000", "Tue 01-05 06:00+0000", "Tue 01-05 18:00+0000"]


@pytest.mark.parametrize("number", [1, 2, 52, 53, -1, -2, -52, -53])
def test_week_numbers_are_those_of_iso_8601_in_all_kinds_of_years(number: int) -> None:
    def wanted(day: date) -> bool:
        year, week, _ = day.isocalendar()
        count = date(year, 12, 28).isocalendar().week
        return number == (week if number > 0 else week - count - 1)

    schedule = Calendar(f"FREQ=YEARLY;BYWEEKNO={number};BYDAY=MO,TU,WE,TH,FR,SA,SU", "UTC")
    begin, end = datetime(1999, 12, 31, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    days = (begin.date() + timedelta(n) for n in range(1, (end - begin).days))
    fires = schedule.anchored(begin).between(begin, end - timedelta(seconds=1))
    assert [fire.local.date() for fire in fires] == [day for day in days if wanted(day)]


def test_an_aware_anchor_is_taken_to_the_zone() -> None:
    schedule = Calendar("FREQ=DAILY", "Asia/Tokyo", anchor="2027-01-01T00:00:00+00:00")
    fire = schedule.next_after(NEW_YEAR - timedelta(days=9))
    assert fire is not None
    assert fire.local.strftime("%F %H:%M") == "2027-01-01 09:00"


def test_without_an_anchor_it_begins_at_midnight_of_the_day_of_registration() -> None:
    now = datetime(2027, 1, 6, 15, 40, tzinfo=UTC)
    registered = Calendar("FREQ=WEEKLY", "America/New_York").anchored(now)
    assert registered.anchor == datetime(2027, 1, 6)  # noqa: DTZ001 - local
    fire = registered.next_after(now)
    assert fire is not None
    assert fire.local.strftime("%a %F %H:%M") == "Wed 2027-01-13 00:00"


def test_the_start_is_the_anchor_where_there_is_none() -> None:
    schedule = Calendar("FREQ=DAILY;INTERVAL=3", "UTC", start="2027-01-02T07:30:00Z")
    assert [fire.at.day for fire in schedule.upcoming(NEW_YEAR, 3)] == [2, 5, 8]


# values as printed in RFC 5545, section 3.8.5.3, where DTSTART is 2 September 1997, 09:00
@pytest.mark.parametrize(
    ("rule", "anchor", "days"),
    [
        ("FREQ=YEARLY;BYDAY=20MO", "19970519", ["05-19", "05-18", "05-17"]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "19970512", ["05-12", "05-11", "05-17"]),
        ("FREQ=YEARLY;INTERVAL=3;BYYEARDAY=1,100,200", "19970101", ["01-01", "04-10", "07-19"]),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "19970902", ["02-13", "03-13", "11-13"]),
        ("FREQ=MONTHLY;BYDAY=TU,WE,TH;BYSETPOS=3", "19970904", ["09-04", "10-07", "11-06"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", "19970929", ["09-29", "10-30", "11-27"]),
        (
            "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
            "19961105",
            ["11-05", "11-07", "11-02"],
        ),
        ("FREQ=MONTHLY;INTERVAL=2;BYDAY=1SU,-1SU", "19970907", ["09-07", "09-28", "11-02"]),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO",
            "19970805",
            ["08-05", "08-10", "08-19", "08-24"],
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
            "19970805",
            ["08-05", "08-17", "08-19", "08-31"],
        ),
    ],
)
def test_examples_of_the_standard(rule: str, anchor: str, days: list[str]) -> None:
    begin = datetime.strptime(anchor + "09", "%Y%m%d%H").replace(tzinfo=UTC)
    schedule = Calendar(rule, "America/New_York", anchor=begin.replace(tzinfo=None))
    fires = schedule.upcoming(begin - timedelta(days=1), len(days))
    assert [fire.local.strftime("%m-%d") for fire in fires] == days
    assert {fire.local.hour for fire in fires} == {9}


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("", "rrule"),
        ("FREQ=HOURLY", "FREQ"),
        ("BYDAY=MO", "FREQ"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=1001", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=two", "INTERVAL"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR"),
        ("FREQ=DAILY;BYMINUTE=-1", "BYMINUTE"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYDAY=XX", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=54MO", "BYDAY"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "BYDAY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS"),
        ("FREQ=DAILY;WKST=XX", "WKST"),
        ("FREQ=DAILY;COUNT=0", "COUNT"),
        ("FREQ=DAILY;UNTIL=soon", "UNTIL"),
        ("FREQ=DAILY;COUNT=1;UNTIL=20270101", "COUNT"),
        ("FREQ=YEARLY;BYEASTER=1", "BYEASTER"),
        ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "never fires"),
        ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2", "never fires"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_part(rule: str, part: str) -> None:
    with pytest.raises(InvalidSchedule, match=part):
        Calendar(rule, "UTC")


def test_a_rule_that_misses_every_leap_year_is_refused_at_registration() -> None:
    rule = Calendar("FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29", "UTC")
    assert rule.anchored(datetime(2028, 1, 1, tzinfo=UTC)).next_after(NEW_YEAR) is not None
    with pytest.raises(InvalidSchedule, match="never fires"):
        rule.anchored(NEW_YEAR)
