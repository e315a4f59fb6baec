"""What a schedule does on the days on which clocks change, by kind of change and by choice."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from horolog.domain.schedule import Cron, Fold, Gap


def local(expression: str, zone: str, after: str, n: int, gap: Gap, fold: Fold) -> list[str]:
    fires = Cron(expression, zone, gap, fold).upcoming(datetime.fromisoformat(after), n)
    return [fire.local.strftime("%m-%d %H:%M%z") for fire in fires]


@pytest.mark.parametrize(
    ("gap", "first"),
    [
        ("run_after_gap", ["03-14 03:00-0400", "03-15 02:30-0400"]),
        ("skip", ["03-15 02:30-0400", "03-16 02:30-0400"]),
        ("shift_forward", ["03-14 03:30-0400", "03-15 02:30-0400"]),
    ],
)
def test_a_time_in_the_gap(gap: Gap, first: list[str]) -> None:
    after = "2027-03-13T12:00:00Z"
    assert local("30 2 * * *", "America/New_York", after, 2, gap, "first") == first


@pytest.mark.parametrize(
    ("fold", "first"),
    [
        ("first", ["11-07 01:30-0400", "11-08 01:30-0500"]),
        ("second", ["11-07 01:30-0500", "11-08 01:30-0500"]),
        ("both", ["11-07 01:30-0400", "11-07 01:30-0500", "11-08 01:30-0500"]),
    ],
)
def test_a_time_in_the_fold(fold: Fold, first: list[str]) -> None:
    after = "2027-11-06T12:00:00Z"
    given = local("30 1 * * *", "America/New_York", after, len(first), "skip", fold)
    assert given == first


def test_asked_between_the_passes_the_second_is_still_to_come() -> None:
    between = "2027-11-07T05:45:00Z"
    both = local("30 1 * * *", "America/New_York", between, 1, "skip", "both")
    second = local("30 1 * * *", "America/New_York", between, 1, "skip", "second")
    first = local("30 1 * * *", "America/New_York", between, 1, "skip", "first")
    assert both == second == ["11-07 01:30-0500"]
    assert first == ["11-08 01:30-0500"]


@pytest.mark.parametrize(
    ("expression", "fold", "first"),
    [
        ("30 1 7 11 *", "first", ["2027 01:30-0400", "2028 01:30-0500"]),
        ("30 1 7 11 *", "second", ["2027 01:30-0500", "2028 01:30-0500"]),
        ("30 1 7 11 *", "both", ["2027 01:30-0400", "2027 01:30-0500", "2028 01:30-0500"]),
        ("*/30 1 7 11 *", "first", ["2027 01:00-0400", "2027 01:30-0400", "2027 01:00-0500"]),
    ],
)
def test_a_yearly_time_meets_both_passes_before_it_waits_a_year(
    expression: str, fold: Fold, first: list[str]
) -> None:
    schedule = Cron(expression, "America/New_York", fold=fold)
    fires = schedule.upcoming(datetime(2027, 1, 1, tzinfo=UTC), len(first))
    assert [fire.local.strftime("%Y %H:%M%z") for fire in fires] == first


def test_times_moved_over_the_gap_mix_with_those_that_exist() -> None:
    after = "2027-03-14T06:30:00Z"
    given = local("0,45 2,3 * * *", "America/New_York", after, 3, "shift_forward", "first")
    assert given == ["03-14 03:00-0400", "03-14 03:45-0400", "03-15 02:00-0400"]


def test_times_in_the_gap_and_one_at_its_end_are_one_fire_time() -> None:
    fires = Cron("0,30 2,3 * * *", "America/New_York").upcoming(
        datetime(2027, 3, 14, 6, tzinfo=UTC), 3
    )
    assert [fire.local.strftime("%d %H:%M") for fire in fires] == [
        "14 03:00",
        "14 03:30",
        "15 02:00",
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "first"),
    [
        # half an hour, both ways
        ("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", "10-03 02:30+1100"),
        ("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T00:00:00Z", "04-04 01:45+1100"),
        # at midnight
        ("0 0 * * *", "America/Santiago", "2027-09-04T12:00:00Z", "09-05 01:00-0300"),
        ("0 0 * * *", "Asia/Beirut", "2027-03-27T12:00:00Z", "03-28 01:00+0300"),
        ("30 0 * * *", "America/Havana", "2025-03-08T12:00:00Z", "03-09 01:00-0400"),
        ("30 23 * * *", "Asia/Beirut", "2027-10-30T12:00:00Z", "10-30 23:30+0300"),
        # a whole day that was not
        ("0 9 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", "12-31 00:00+1400"),
        # several changes a year
        ("30 2 * * *", "Africa/Casablanca", "2024-04-13T12:00:00Z", "04-14 03:00+0100"),
        ("30 2 * * *", "Africa/Casablanca", "2024-03-09T12:00:00Z", "03-10 02:30+0100"),
        # negative daylight saving time
        ("30 1 * * *", "Europe/Dublin", "2027-03-27T12:00:00Z", "03-28 02:00+0100"),
        ("30 1 * * *", "Europe/Dublin", "2027-10-30T12:00:00Z", "10-31 01:30+0100"),
        # two hours
        ("30 1 * * *", "Antarctica/Troll", "2027-03-27T12:00:00Z", "03-28 03:00+0200"),
        # over the end of the day, either way
        ("30 23 * * *", "America/Nuuk", "2027-03-27T12:00:00Z", "03-28 00:00-0100"),
        ("30 0 * * *", "Africa/Cairo", "2027-04-29T12:00:00Z", "04-30 01:00+0300"),
        # none at all
        ("30 2 * * *", "Asia/Tokyo", "2027-03-27T12:00:00Z", "03-28 02:30+0900"),
        ("30 2 * * *", "Etc/GMT+5", "2027-03-27T12:00:00Z", "03-28 02:30-0500"),
        # by odd seconds, before standard time
        ("2 0 * * *", "America/New_York", "1883-11-18T12:00:00Z", "11-19 00:02-0500"),
        ("0 12 * * *", "Africa/Monrovia", "1971-06-01T00:00:00Z", "06-01 12:00-004430"),
    ],
)
def test_kinds_of_changes(expression: str, zone: str, after: str, first: str) -> None:
    given = local(expression, zone, after, 1, "run_after_gap", "first")[0]
    assert given.startswith(first)


@pytest.mark.parametrize("zone", ["Africa/Casablanca", "Africa/El_Aaiun"])
def test_a_fixed_time_outlives_the_month_of_several_changes(zone: str) -> None:
    fires = Cron("30 2 * * *", zone).upcoming(datetime(2024, 1, 1, tzinfo=UTC), 366)
    assert [fire.nominal.date().toordinal() for fire in fires] == list(
        range(fires[0].nominal.date().toordinal(), fires[0].nominal.date().toordinal() + 366)
    )


def test_a_starred_schedule_never_has_a_hole_and_never_piles_up() -> None:
    for zone in ("America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Antarctica/Troll"):
        fires = Cron("*/15 * * * *", zone).between(
            datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
        )
        at = [fire.at for fire in fires]
        steps = {later - earlier for earlier, later in pairwise(at)}
        assert steps == {timedelta(minutes=15)}, zone


def test_notes_say_what_the_clock_did() -> None:
    gap = Cron("30 2 * * *", "America/New_York").next_after(datetime(2027, 3, 13, 12, tzinfo=UTC))
    moved = Cron("30 2 * * *", "America/New_York", "shift_forward").next_after(
        datetime(2027, 3, 13, 12, tzinfo=UTC)
    )
    fold = Cron("30 1 * * *", "America/New_York", fold="both").upcoming(
        datetime(2027, 11, 6, 12, tzinfo=UTC), 3
    )
    assert gap is not None
    assert gap.note == "02:30 does not exist; ran after the gap"
    assert gap.nominal == datetime(2027, 3, 14, 2, 30)  # noqa: DTZ001 - a local time
    assert moved is not None
    assert moved.note == "02:30 does not exist; moved later by the length of the gap"
    assert [fire.note for fire in fold] == [
        "01:30 happens twice; this is the first",
        "01:30 happens twice; this is the second",
        "",
    ]


def test_the_rules_go_on_after_the_last_listed_year() -> None:
    fires = Cron("0 12 * * *", "Europe/Berlin").between(
        datetime(2099, 12, 30, 12, tzinfo=UTC), datetime(2101, 7, 2, tzinfo=UTC)
    )
    offsets = {(fire.local.year, fire.local.month): fire.local.strftime("%z") for fire in fires}
    assert offsets[2100, 1] == offsets[2101, 1] == "+0100"
    assert offsets[2100, 7] == offsets[2101, 7] == "+0200"


def test_a_schedule_ends_with_the_calendar() -> None:
    schedule = Cron("0 12 * * *", "Europe/Berlin")
    assert schedule.next_after(datetime(9999, 12, 31, 23, 59, tzinfo=UTC)) is None
    late = schedule.upcoming(datetime(9999, 12, 1, tzinfo=UTC), 60)
    assert 25 <= len(late) <= 31


def test_a_schedule_can_be_asked_from_the_year_one() -> None:
    fire = Cron("0 12 * * *", "America/New_York").next_after(datetime(1, 1, 1, tzinfo=UTC))
    assert fire is not None
    assert fire.at.year == 1
