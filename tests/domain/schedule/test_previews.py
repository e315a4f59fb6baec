"""What people look at before they make a change: differences, and a month at a glance."""

from datetime import UTC, datetime

from horolog.domain.schedule import Cron, Every, Once, difference, month_picture

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


class TestDifference:
    def test_tells_what_stays_what_comes_and_what_goes(self) -> None:
        changed = difference(Cron("0 2,3 * * *", "UTC"), Cron("0 3,4 * * *", "UTC"), NEW_YEAR, 4)
        assert [fire.at.hour for fire in changed.kept] == [3, 3]
        assert [fire.at.hour for fire in changed.added] == [4, 4][: len(changed.added)]
        assert [fire.at.hour for fire in changed.removed] == [2, 2]
        assert not changed.unchanged

    def test_a_denser_schedule_removes_nothing(self) -> None:
        changed = difference(Cron("0 2 * * *", "UTC"), Cron("0 2,3 * * *", "UTC"), NEW_YEAR, 6)
        assert changed.removed == ()
        assert changed.until == datetime(2027, 1, 3, 3, tzinfo=UTC)

    def test_another_spelling_of_the_same_changes_nothing(self) -> None:
        changed = difference(Cron("*/30 * * * *", "UTC"), Every(1800, NEW_YEAR), NEW_YEAR, 50)
        assert changed.unchanged
        assert len(changed.kept) == 50

    def test_a_schedule_that_ends_loses_all_that_came_after(self) -> None:
        changed = difference(
            Once(NEW_YEAR.replace(day=2)), Once(NEW_YEAR.replace(day=3)), NEW_YEAR, 5
        )
        assert [fire.at.day for fire in changed.removed] == [2]
        assert [fire.at.day for fire in changed.added] == [3]
        assert changed.until is None

    def test_another_zone_shows_where_the_clocks_differ(self) -> None:
        changed = difference(
            Cron("0 9 * * *", "Europe/Berlin"), Cron("0 9 * * *", "Africa/Lagos"), NEW_YEAR, 200
        )
        assert changed.added[0].local.date().isoformat() == "2027-03-28"


class TestMonthPicture:
    def test_counts_by_day_and_hour(self) -> None:
        picture = month_picture(Cron("0,30 9 * * 1-5", "Europe/Berlin"), 2027, 2)
        assert len(picture.counts) == 28
        assert picture.counts[0][9] == 2  # a Monday
        assert sum(picture.counts[6]) == 0  # a Sunday
        assert sum(map(sum, picture.counts)) == 40
        assert picture.complete

    def test_shows_the_hour_that_is_missing_and_the_one_that_is_there_twice(self) -> None:
        quarters = Cron("*/15 * * * *", "America/New_York")
        march = month_picture(quarters, 2027, 3)
        november = month_picture(quarters, 2027, 11)
        assert march.counts[13][1:4] == (4, 0, 4)
        assert november.counts[6][:3] == (4, 8, 4)
        assert november.notes[7][0] == "01:00 happens twice; this is the first"

    def test_holds_the_whole_of_a_minutely_month_in_any_zone(self) -> None:
        picture = month_picture(Cron("* * * * *", "Asia/Kolkata"), 2027, 12)
        assert {count for day in picture.counts for count in day} == {60}

    def test_stops_counting_seconds_and_says_so(self) -> None:
        picture = month_picture(Cron("* * * * * *", "UTC"), 2027, 1)
        assert not picture.complete

    def test_a_schedule_without_a_zone_is_shown_in_utc(self) -> None:
        picture = month_picture(Once("2027-01-31T23:30:00-05:00"), 2027, 2)
        assert (picture.zone, picture.counts[0][4]) == ("UTC", 1)
