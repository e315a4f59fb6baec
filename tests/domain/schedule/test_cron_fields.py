"""What a cron expression means, and what is refused instead of guessed."""

from datetime import UTC, date, datetime, timedelta

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Cron

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


def days(expression: str, n: int, after: datetime = NEW_YEAR, **options: str) -> list[str]:
    fires = Cron(expression, "UTC", **options).upcoming(after, n)  # pyright: ignore[reportArgumentType]
    return [fire.local.strftime("%a %m-%d") for fire in fires]


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("0 9 L * *", ["Sun 01-31", "Sun 02-28", "Wed 03-31"]),
        ("0 9 L-2 * *", ["Fri 01-29", "Fri 02-26", "Mon 03-29"]),
        ("0 9 LW * *", ["Fri 01-29", "Fri 02-26", "Wed 03-31"]),
        ("0 9 15W * *", ["Fri 01-15", "Mon 02-15", "Mon 03-15"]),
        ("0 9 1W * *", ["Fri 01-01", "Mon 02-01", "Mon 03-01", "Thu 04-01", "Mon 05-03"]),
        ("0 9 31W * *", ["Fri 01-29", "Wed 03-31", "Mon 05-31", "Fri 07-30"]),
        ("0 9 * * 5L", ["Fri 01-29", "Fri 02-26"]),
        ("0 9 * * friL", ["Fri 01-29", "Fri 02-26"]),
        ("0 9 * * L5", ["Fri 01-29", "Fri 02-26"]),
        ("0 9 * * 0L", ["Sun 01-31", "Sun 02-28"]),
        ("0 9 * * 7L", ["Sun 01-31", "Sun 02-28"]),
        ("0 9 * * tue#1", ["Tue 01-05", "Tue 02-02"]),
        ("0 9 * * 2#5", ["Tue 03-30", "Tue 06-29"]),
        ("0 9 * * 1#1,5", ["Fri 01-01", "Mon 01-04", "Fri 01-08"]),
        ("0 9 ? * 1", ["Mon 01-04", "Mon 01-11"]),
        ("0 9 * * fri-sun", ["Fri 01-01", "Sat 01-02", "Sun 01-03", "Fri 01-08"]),
        ("0 9 * * 5-7", ["Fri 01-01", "Sat 01-02", "Sun 01-03", "Fri 01-08"]),
        ("0 9 * * sun-mon", ["Sun 01-03", "Mon 01-04", "Sun 01-10"]),
        ("0 9 29 2 *", ["Tue 02-29", "Sun 02-29"]),
    ],
)
def test_days(expression: str, first: list[str]) -> None:
    assert days(expression, len(first)) == first


def test_two_restricted_day_fields_mean_either() -> None:
    assert days("0 9 13 * 5", 4) == ["Fri 01-01", "Fri 01-08", "Wed 01-13", "Fri 01-15"]


def test_two_restricted_day_fields_mean_both_if_told_so() -> None:
    assert days("0 9 13 * 5", 2, day_rule="and") == ["Fri 08-13", "Fri 10-13"]


def test_a_star_with_a_step_keeps_both_day_fields_binding() -> None:
    assert days("0 9 */2 * 1", 3) == ["Mon 01-11", "Mon 01-25", "Mon 02-01"]
    assert days("0 9 */2 * 1", 3, day_rule="or") == ["Fri 01-01", "Sun 01-03", "Mon 01-04"]


@pytest.mark.parametrize(
    ("alias", "spelled"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@MIDNIGHT", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_an_alias_fires_as_what_it_stands_for(alias: str, spelled: str) -> None:
    fires = Cron(alias, "America/New_York").upcoming(NEW_YEAR, 20)
    assert fires == Cron(spelled, "America/New_York").upcoming(NEW_YEAR, 20)


@pytest.mark.parametrize(
    ("expression", "field", "hint"),
    [
        ("30-10 * * * *", "minute", "30-59,0-10"),
        ("0 22-6 * * *", "hour", "22-23,0-6"),
        ("0 0 * nov-feb *", "month", "11-12,1-2"),
        ("0 0 * * 7-2", "day of week", "backwards"),
        ("*/60 * * * *", "minute", "1 to 59"),
        ("0 */24 * * *", "hour", "1 to 23"),
        ("0 0 */32 * *", "day of month", "1 to 31"),
        ("0 0 * */13 *", "month", "1 to 12"),
        ("0 0 * * */8", "day of week", "1 to 7"),
        ("5,,7 * * * *", "minute", "cannot read ''"),
        ("a * * * *", "minute", "cannot read 'a'"),
        ("0 0 * foo *", "month", "jan"),
        ("0 0 * * foo", "day of week", "mon"),
        ("0 0 * * foo#1", "day of week", "mon"),
        ("? * * * *", "minute", "day fields"),
        ("0 0 32W * *", "day of month", "1W to 31W"),
        ("0 0 0W * *", "day of month", "1W to 31W"),
        ("0 0 L-31 * *", "day of month", "L-30"),
        ("0 0 WL * *", "day of month", "LW or 15W"),
        ("0 0 * * L", "day of week", "5L"),
        ("0 0 * * 1#6", "day of week", "2#1"),
        ("0 0 * * 1-5L", "day of week", "5L"),
        ("H(9-70) * * * *", "minute", "70 is out of range"),
        ("H(9-3) * * * *", "minute", "backwards"),
        ("1.5 * * * *", "minute", "cannot read"),
        ("١ * * * *", "minute", "cannot read"),
        ("0 0 5#1 * *", "day of month", "cannot read"),
    ],
)
def test_what_is_ambiguous_is_refused_with_its_field(
    expression: str, field: str, hint: str
) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        Cron(expression, "UTC")
    assert f"{field} field" in str(refusal.value)
    assert hint in str(refusal.value)


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30W 2 *", "0 0 L-29 2 *", "0 0 L-30 4 *"],
)
def test_a_date_that_no_year_has_is_refused(expression: str) -> None:
    with pytest.raises(InvalidSchedule, match="never fires"):
        Cron(expression, "UTC")


def test_a_date_that_no_year_has_may_stand_beside_a_weekday() -> None:
    assert days("0 0 31 2 1", 2) == ["Mon 02-01", "Mon 02-08"]
    with pytest.raises(InvalidSchedule, match="never fires"):
        Cron("0 0 31 2 1", "UTC", day_rule="and")


def test_every_second_is_asked_from_within_a_minute() -> None:
    after = datetime(2027, 1, 1, 12, 59, 58, tzinfo=UTC)
    fires = Cron("* * * * * *", "UTC").upcoming(after, 3)
    assert [fire.at - after for fire in fires] == [timedelta(seconds=n) for n in (1, 2, 3)]


def test_a_leap_day_on_a_given_weekday_is_found_decades_ahead() -> None:
    fire = Cron("0 0 29 2 1", "UTC", day_rule="and").next_after(datetime(2080, 1, 1, tzinfo=UTC))
    assert fire is not None
    assert fire.local.date() == date(2112, 2, 29)


@pytest.mark.parametrize("alias", ["@reboot", "@every 5m", "@", "@dayly"])
def test_an_unknown_alias_is_refused_with_the_known_ones(alias: str) -> None:
    with pytest.raises(InvalidSchedule, match="@daily"):
        Cron(alias, "UTC")


class TestHashedFields:
    def test_the_same_key_draws_the_same_time(self) -> None:
        fires = [
            Cron("H H * * *", "UTC", hash_key="bill-42").upcoming(NEW_YEAR, 3) for _ in range(2)
        ]
        assert fires[0] == fires[1]

    def test_different_keys_spread_over_the_hour(self) -> None:
        minutes = {
            Cron("H * * * *", "UTC", hash_key=f"job-{n}").upcoming(NEW_YEAR, 1)[0].local.minute
            for n in range(400)
        }
        assert len(minutes) > 55

    def test_a_step_keeps_its_distance_and_begins_anywhere(self) -> None:
        schedules = [Cron("H/15 * * * *", "UTC", hash_key=f"job-{n}") for n in range(40)]
        for schedule in schedules:
            first, *rest = schedule.upcoming(NEW_YEAR, 8)
            assert all(
                later.at - first.at == timedelta(minutes=15 * n)
                for n, later in enumerate(rest, start=1)
            )
        assert len({schedule.upcoming(NEW_YEAR, 1)[0].at for schedule in schedules}) > 10

    def test_a_range_is_kept(self) -> None:
        for n in range(60):
            fire = Cron("0 H(9-16) * * H(1-5)", "UTC", hash_key=f"job-{n}").next_after(NEW_YEAR)
            assert fire is not None
            assert 9 <= fire.local.hour <= 16
            assert fire.local.weekday() < 5

    def test_a_hashed_day_of_the_month_exists_in_each(self) -> None:
        for n in range(40):
            assert len(Cron("0 0 H * *", "UTC", hash_key=f"job-{n}").upcoming(NEW_YEAR, 12)) == 12
            last = Cron("0 0 H * *", "UTC", hash_key=f"job-{n}").upcoming(NEW_YEAR, 12)[-1]
            assert last.local.month == 12

    def test_registration_fixes_the_key_once(self) -> None:
        registered = Cron("H H * * *", "UTC").anchored(NEW_YEAR, hash_key="bill-42")
        assert registered.hash_key == "bill-42"
        assert registered.anchored(NEW_YEAR, hash_key="other") == registered
        assert registered == Cron("H H * * *", "UTC", hash_key="bill-42")

    def test_registration_leaves_other_expressions_alone(self) -> None:
        assert Cron("0 9 * * thu", "UTC").anchored(NEW_YEAR, hash_key="x").hash_key is None
