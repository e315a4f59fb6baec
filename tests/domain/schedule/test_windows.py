"""Start, end, limit and exclusions: what is inside of a schedule's window."""

from datetime import UTC, date, datetime, timedelta

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Calendar, Cron, Every, HolidayCalendar, Omission, Once, Union

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


def days(schedule: Cron | Every | Union | Once, n: int, after: datetime = NEW_YEAR) -> list[int]:
    return [fire.local.day for fire in schedule.upcoming(after, n)]


def test_start_and_end_are_both_included() -> None:
    schedule = Cron(
        "0 9 * * *", "UTC", start="2027-01-03T09:00:00Z", end=datetime(2027, 1, 5, 9, tzinfo=UTC)
    )
    assert days(schedule, 9) == [3, 4, 5]
    assert schedule.next_after(datetime(2027, 1, 5, 9, tzinfo=UTC)) is None


def test_a_local_start_is_read_in_the_schedules_zone() -> None:
    schedule = Cron("0 * * * *", "Asia/Tokyo", start="2027-01-03T09:00:00")
    assert schedule.start == datetime(2027, 1, 3, tzinfo=UTC)
    with pytest.raises(InvalidSchedule, match=r"start: .* has no zone"):
        Every(60, start="2027-01-03T09:00:00")


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="is before start"):
        Every(60, start="2027-01-03T09:00:00Z", end="2027-01-03T08:00:00Z")


def test_a_limit_counts_from_the_start_if_there_is_one() -> None:
    started = Cron("0 9 * * *", "UTC", start="2026-12-30T00:00:00Z", limit=4)
    assert days(started, 9) == [1, 2]
    assert days(started, 1) == [1]
    assert days(Cron("0 9 * * *", "UTC", limit=4), 9) == [1, 2, 3, 4]


def test_a_limit_is_left_to_the_job_when_the_next_fire_time_is_asked() -> None:
    schedule = Cron("0 9 * * *", "UTC", start="2026-01-01T00:00:00Z", limit=1)
    assert schedule.next_after(NEW_YEAR) is not None


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ("2027-01-02", [1, 3, 4]),
        (date(2027, 1, 2), [1, 3, 4]),
        (["2027-01-01", date(2027, 1, 3)], [2, 4, 5]),
        ("2027-01-02T09:00:00", [1, 3, 4]),
        ("2027-01-02T09:00:01", [1, 2, 3]),
        ("2027-01-02T08:00:00+00:00", [1, 3, 4]),
        (datetime(2027, 1, 2, 9, tzinfo=UTC), [1, 2, 3]),
    ],
)
def test_dates_local_times_and_instants_are_excluded(exclude: object, left: list[int]) -> None:
    assert days(Cron("0 9 * * *", "Europe/Berlin", exclude=exclude), 3) == left  # pyright: ignore[reportArgumentType]


def test_an_excluded_date_is_the_one_that_was_stated_not_where_the_gap_moved_it() -> None:
    nuuk = Cron("30 23 * * *", "America/Nuuk", exclude="2027-03-27")
    fires = nuuk.upcoming(datetime(2027, 3, 26, 12, tzinfo=UTC), 2)
    assert [fire.local.strftime("%d %H:%M") for fire in fires] == ["26 23:30", "28 23:30"]


def test_what_a_gap_moved_onto_another_fire_time_goes_alone() -> None:
    apia = Cron("0 0 * * *", "Pacific/Apia", exclude="2011-12-30")
    fires = apia.upcoming(datetime(2011, 12, 29, 12, tzinfo=UTC), 2)
    assert [(fire.local.day, fire.note) for fire in fires] == [(31, ""), (1, "")]


@pytest.mark.parametrize("exclude", ["soon", 5, ["2027-13-01"], [None]])
def test_an_exclusion_that_is_no_date_is_refused(exclude: object) -> None:
    with pytest.raises(InvalidSchedule):
        Cron("0 9 * * *", "UTC", exclude=exclude)  # pyright: ignore[reportArgumentType]


def test_a_schedule_that_excludes_itself_ends() -> None:
    saturdays_off = HolidayCalendar("weekend", "1", weekdays_off=["sat"])
    assert Cron("0 0 * * 6", "UTC", holidays=saturdays_off).next_after(NEW_YEAR) is None


def test_an_excluded_day_of_seconds_is_left_at_once() -> None:
    schedule = Cron("* * * * * *", "Europe/Berlin", exclude=["2027-01-01", "2027-01-02"])
    fire = schedule.next_after(NEW_YEAR)
    assert fire is not None
    assert fire.local.isoformat() == "2027-01-03T00:00:00+01:00"


class TestHolidays:
    BANK = HolidayCalendar("bank", "2027.1", ["2027-01-15"], weekdays_off=["sat", "sun"])

    @pytest.mark.parametrize(
        ("roll", "expected"),
        [
            ("drop", ["02-15", "03-15", "04-15", "06-15"]),
            ("next", ["01-18", "02-15", "03-15", "04-15", "05-17"]),
            ("previous", ["01-14", "02-15", "03-15", "04-15", "05-14"]),
        ],
    )
    def test_a_fire_time_on_a_holiday(self, roll: str, expected: list[str]) -> None:
        schedule = Cron("0 9 15 * *", "Europe/Berlin", holidays=self.BANK, roll=roll)  # pyright: ignore[reportArgumentType]
        fires = schedule.upcoming(NEW_YEAR, len(expected))
        assert [fire.local.strftime("%m-%d") for fire in fires] == expected
        assert {fire.local.hour for fire in fires} == {9}

    def test_the_note_says_from_where_it_moved(self) -> None:
        schedule = Cron("0 9 15 1 *", "Europe/Berlin", holidays=self.BANK, roll="next")
        fire = schedule.next_after(NEW_YEAR)
        assert fire is not None
        assert fire.note == "2027-01-15 is off (bank); moved to 2027-01-18"
        assert fire.nominal == datetime(2027, 1, 15, 9)  # noqa: DTZ001 - local

    def test_two_that_come_to_one_instant_are_one(self) -> None:
        schedule = Cron("0 9 * * *", "Europe/Berlin", holidays=self.BANK, roll="next")
        assert days(schedule, 9)[:9] == [1, 4, 5, 6, 7, 8, 11, 12, 13]

    def test_what_rolls_keeps_its_own_clock(self) -> None:
        schedule = Union(
            [Cron("0 9 * * 6", "Europe/Berlin"), Cron("0 10 * * 1", "Europe/Berlin")],
            holidays=self.BANK,
            roll="next",
        )
        fires = schedule.upcoming(NEW_YEAR, 2)
        assert [fire.local.strftime("%a %H") for fire in fires] == ["Mon 09", "Mon 10"]

    def test_a_closure_of_months_ends_the_rolling(self) -> None:
        closed = [date(2027, 1, 2) + timedelta(n) for n in range(100)]
        schedule = Cron(
            "0 9 2 1 *", "UTC", holidays=HolidayCalendar("works", "1", closed), roll="next"
        )
        fire = schedule.next_after(NEW_YEAR)
        assert fire is None or fire.local.year > 2027

    def test_a_calendar_of_no_working_day_is_refused(self) -> None:
        with pytest.raises(InvalidSchedule, match="all seven"):
            HolidayCalendar(
                "none", "1", weekdays_off=["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
            )

    def test_two_versions_of_a_calendar_are_two_schedules(self) -> None:
        newer = HolidayCalendar("bank", "2027.2", ["2027-01-15"], weekdays_off=["sat", "sun"])
        one, other = (Cron("0 9 * * *", "UTC", holidays=each) for each in (self.BANK, newer))
        assert one != other


class TestOmissions:
    UNTIL = datetime(2027, 12, 31, tzinfo=UTC)

    def reasons(self, schedule: Cron | Calendar | Union | Every) -> list[tuple[str, str]]:
        omitted: list[Omission] = list(schedule.omitted(NEW_YEAR, self.UNTIL))
        return [(left.local.isoformat(timespec="minutes"), left.reason) for left in omitted]

    def test_a_skipped_gap_is_told(self) -> None:
        schedule = Cron("30 2 * * *", "America/New_York", gap="skip")
        assert self.reasons(schedule) == [("2027-03-14T02:30", "gap")]

    def test_exclusions_and_dropped_holidays_are_told(self) -> None:
        bank = HolidayCalendar("bank", "1", ["2027-05-01"])
        schedule = Cron("0 9 1 * *", "UTC", exclude="2027-02-01", holidays=bank)
        assert self.reasons(schedule) == [
            ("2027-02-01T09:00", "excluded"),
            ("2027-05-01T09:00", "holiday"),
        ]

    def test_a_recurrence_rule_tells_its_gaps_too(self) -> None:
        rule = "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"
        schedule = Calendar(rule, "America/New_York", gap="skip", anchor=NEW_YEAR)
        assert self.reasons(schedule) == [("2027-03-14T02:30", "gap")]

    def test_a_union_tells_what_its_members_leave_out(self) -> None:
        member = Cron("30 2 * * *", "America/New_York", gap="skip")
        assert self.reasons(Union([member, Every(86_400, NEW_YEAR)])) == [
            ("2027-03-14T02:30", "gap")
        ]

    def test_what_ran_or_rolled_is_not_left_out(self) -> None:
        bank = HolidayCalendar("bank", "1", ["2027-05-01"])
        assert not self.reasons(Cron("30 2 * * *", "America/New_York"))
        assert not self.reasons(Cron("0 9 1 * *", "UTC", holidays=bank, roll="next"))
        assert not self.reasons(Cron("*/5 * * * *", "America/New_York", gap="skip"))

    def test_fires_and_omissions_are_all_that_is_stated(self) -> None:
        kept = Cron("30 2 * * *", "America/New_York", gap="skip", exclude=["2027-06-01"])
        stated = Cron("30 2 * * *", "America/New_York")
        fires = [fire.nominal for fire in kept.between(NEW_YEAR, self.UNTIL)]
        left_out = [left.local for left in kept.omitted(NEW_YEAR, self.UNTIL)]
        assert sorted(fires + left_out) == [
            fire.nominal for fire in stated.between(NEW_YEAR, self.UNTIL)
        ]


class TestUnions:
    def test_fires_whenever_a_member_does_and_once_where_several_do(self) -> None:
        schedule = Union([Cron("0 9 * * *", "UTC"), Cron("0 9,10 * * 1", "UTC")])
        fires = schedule.upcoming(NEW_YEAR, 5)
        assert [fire.at.strftime("%a %H") for fire in fires] == [
            "Fri 09", "Sat 09", "Sun 09", "Mon 09", "Mon 10",
        ]  # fmt: skip

    def test_members_keep_their_windows_under_that_of_the_union(self) -> None:
        schedule = Union(
            [Cron("0 9 * * *", "UTC", end="2027-01-02T09:00:00Z"), Once("2027-01-09T00:00:00Z")],
            exclude="2027-01-01",
        )
        assert days(schedule, 9) == [2, 9]

    def test_registration_anchors_the_members(self) -> None:
        registered = Union([Every(60), Cron("H * * * *", "UTC")]).anchored(NEW_YEAR, "key")
        assert registered == Union([Every(60, NEW_YEAR), Cron("H * * * *", "UTC", hash_key="key")])

    @pytest.mark.parametrize("count", [0, 33])
    def test_none_or_too_many_members_are_refused(self, count: int) -> None:
        with pytest.raises(InvalidSchedule, match="schedules"):
            Union([Once(NEW_YEAR)] * count)
