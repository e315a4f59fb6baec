"""One-offs and intervals: instants, local times, and elapsed time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Every, Once

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
LONG_AGO = datetime(1900, 1, 1, tzinfo=UTC)


class TestOnce:
    def test_an_instant_fires_once(self) -> None:
        schedule = Once(NEW_YEAR.astimezone(timezone(timedelta(hours=5))))
        assert [fire.at for fire in schedule.upcoming(LONG_AGO, 9)] == [NEW_YEAR]
        assert schedule == Once(NEW_YEAR)
        assert schedule.next_after(NEW_YEAR) is None

    def test_a_local_time_is_read_in_its_zone(self) -> None:
        fire = Once("2027-07-01T09:00:00", "America/New_York").next_after(LONG_AGO)
        assert fire is not None
        assert fire.at == datetime(2027, 7, 1, 13, tzinfo=UTC)

    def test_a_zone_beside_an_instant_is_for_showing(self) -> None:
        fire = Once(NEW_YEAR, "Asia/Tokyo").next_after(LONG_AGO)
        assert fire is not None
        assert (fire.at, fire.local.hour) == (NEW_YEAR, 9)

    def test_a_local_time_without_a_zone_is_refused(self) -> None:
        with pytest.raises(InvalidSchedule, match="has no zone; add an offset"):
            Once(datetime(2027, 1, 1))  # noqa: DTZ001 - that is the point

    @pytest.mark.parametrize(
        ("at", "utc", "note"),
        [
            (
                "2027-03-14T02:30:00",
                datetime(2027, 3, 14, 7, 30, tzinfo=UTC),
                "02:30 does not exist; read with the offset before the gap",
            ),
            (
                "2027-11-07T01:30:00",
                datetime(2027, 11, 7, 5, 30, tzinfo=UTC),
                "01:30 happens twice; this is the first",
            ),
        ],
    )
    def test_an_unclear_local_time_follows_the_standard(
        self, at: str, utc: datetime, note: str
    ) -> None:
        fire = Once(at, "America/New_York").next_after(LONG_AGO)
        assert fire is not None
        assert (fire.at, fire.note) == (utc, note)

    @pytest.mark.parametrize(
        ("at", "first", "second"),
        [
            ("2027-03-14T02:30:00", "2027-03-14T03:30:00-04:00", "2027-03-14T01:30:00-05:00"),
            ("2027-11-07T01:30:00", "2027-11-07T01:30:00-04:00", "2027-11-07T01:30:00-05:00"),
        ],
    )
    def test_an_unclear_local_time_is_refused_with_both_instants_if_asked(
        self, at: str, first: str, second: str
    ) -> None:
        with pytest.raises(InvalidSchedule) as refusal:
            Once(at, "America/New_York", strict=True)
        assert first in str(refusal.value)
        assert second in str(refusal.value)

    def test_strictness_lets_a_clear_time_pass_and_is_not_kept(self) -> None:
        strict = Once("2027-07-01T09:00:00", "America/New_York", strict=True)
        assert strict == Once("2027-07-01T09:00:00", "America/New_York")


class TestEvery:
    def test_the_anchor_is_the_first_fire_time(self) -> None:
        schedule = Every(3600, NEW_YEAR)
        assert [fire.at.hour for fire in schedule.upcoming(LONG_AGO, 3)] == [0, 1, 2]
        assert [fire.at.hour for fire in schedule.upcoming(NEW_YEAR, 3)] == [1, 2, 3]

    def test_fractions_of_a_second_do_not_add_up_to_drift(self) -> None:
        schedule = Every(0.1, NEW_YEAR)
        far = NEW_YEAR + timedelta(days=400)
        assert [fire.at for fire in schedule.upcoming(far, 2)] == [
            far + timedelta(milliseconds=100),
            far + timedelta(milliseconds=200),
        ]

    def test_registration_fixes_the_anchor_once(self) -> None:
        registered = Every(60).anchored(NEW_YEAR)
        assert registered == Every(60, NEW_YEAR)
        assert registered.anchored(NEW_YEAR + timedelta(1)) == registered
        fire = registered.next_after(NEW_YEAR)
        assert fire is not None
        assert fire.at == NEW_YEAR + timedelta(seconds=60)

    def test_without_an_anchor_a_preview_begins_where_it_is_asked_from(self) -> None:
        fires = Every(60).upcoming(NEW_YEAR, 2)
        assert [fire.at.minute for fire in fires] == [1, 2]

    def test_the_start_is_the_anchor_where_there_is_none(self) -> None:
        schedule = Every(3600, start="2027-01-01T00:20:00Z")
        assert [fire.at.minute for fire in schedule.upcoming(NEW_YEAR, 2)] == [20, 20]

    def test_days_are_elapsed_time_unless_told_to_keep_the_local_hour(self) -> None:
        anchor = datetime(2027, 3, 12, 22, tzinfo=UTC)
        elapsed = Every(86_400, anchor, zone="America/New_York")
        kept = Every(86_400, anchor, zone="America/New_York", keep_local_hour=True)
        assert [fire.local.hour for fire in elapsed.upcoming(anchor, 3)] == [17, 18, 18]
        assert [fire.local.hour for fire in kept.upcoming(anchor, 3)] == [17, 17, 17]

    def test_keeping_the_local_hour_runs_after_a_gap_and_returns(self) -> None:
        schedule = Every(
            86_400, "2027-03-12T02:30:00", zone="America/New_York", keep_local_hour=True
        )
        fires = schedule.upcoming(datetime(2027, 3, 13, 12, tzinfo=UTC), 2)
        assert [fire.local.strftime("%d %H:%M") for fire in fires] == ["14 03:00", "15 02:30"]

    @pytest.mark.parametrize("seconds", [3600, 86_401, 129_600])
    def test_only_whole_days_can_keep_the_local_hour(self, seconds: int) -> None:
        with pytest.raises(InvalidSchedule, match="whole days"):
            Every(seconds, NEW_YEAR, zone="UTC", keep_local_hour=True)

    def test_keeping_the_local_hour_needs_a_zone(self) -> None:
        with pytest.raises(InvalidSchedule, match="needs a zone"):
            Every(86_400, NEW_YEAR, keep_local_hour=True)

    @pytest.mark.parametrize("seconds", [0, -1, 0.05, 1e10, float("inf"), float("nan")])
    def test_an_interval_out_of_range_is_refused(self, seconds: float) -> None:
        with pytest.raises(InvalidSchedule, match="seconds"):
            Every(seconds)

    def test_a_duration_is_taken_too(self) -> None:
        assert Every(timedelta(minutes=5)) == Every(300)

    def test_it_ends_with_the_calendar(self) -> None:
        schedule = Every(86_400, datetime(9998, 12, 30, 12, tzinfo=UTC), zone="Asia/Tokyo")
        late = schedule.upcoming(datetime(9999, 12, 20, tzinfo=UTC), 99)
        assert [fire.at.day for fire in late] == list(range(20, 29))


def test_an_instant_without_a_zone_is_refused_as_a_question() -> None:
    with pytest.raises(InvalidSchedule, match="has no zone"):
        Every(60).next_after(datetime(2027, 1, 1))  # noqa: DTZ001 - that is the point
