"""What holds for every schedule, in every zone, wherever one starts to ask."""

import json
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.domain.schedule import (
    Calendar,
    Cron,
    Every,
    Fold,
    HolidayCalendar,
    Once,
    Schedule,
    Union,
    schedule_from_json,
    zone_names,
)

LAWS = settings(max_examples=120, deadline=None)

zones = st.sampled_from(sorted(zone_names()))
instants = st.datetimes(
    min_value=datetime(1890, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2150, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
) | st.datetimes(
    min_value=datetime(2026, 1, 1),  # noqa: DTZ001
    max_value=datetime(2029, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
gaps = st.sampled_from(("run_after_gap", "skip", "shift_forward"))
folds = st.sampled_from(("first", "second", "both"))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    lists = st.lists(numbers, min_size=1, max_size=3).map(lambda n: ",".join(map(str, n)))
    ranges = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.integers(1, high).map(lambda step: f"*/{step}")
    return st.one_of(st.just("*"), lists, ranges, steps)


expressions = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)).map(
    " ".join
)
fixed_hours = st.tuples(st.integers(0, 59), st.integers(0, 23))

crons = st.builds(
    Cron,
    expressions,
    zones,
    gaps,
    folds,
    stars=st.sampled_from(("elapsed", "fixed")),
    day_rule=st.sampled_from(("crontab", "or")),
)
RULES = (
    "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=0,2,23",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU",
    "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30",
    "FREQ=YEARLY;BYMONTHDAY=-1",
)
calendars = st.builds(Calendar, st.sampled_from(RULES), zones, gaps, folds, anchor=instants)
elapsed = st.builds(Every, st.sampled_from((0.25, 7, 3600, 86_400)), instants)
local_days = st.builds(
    Every,
    st.integers(1, 9).map(lambda days: days * 86_400),
    instants,
    zone=zones,
    keep_local_hour=st.just(value=True),
)
singles: st.SearchStrategy[Once | Every | Cron | Calendar] = st.one_of(
    crons, calendars, elapsed, local_days, st.builds(Once, instants)
)
holidays = st.builds(
    HolidayCalendar,
    st.just("test"),
    st.just("1"),
    st.lists(st.dates(date(2026, 1, 1), date(2028, 1, 1)), max_size=9),
    st.sampled_from(((), ("sat", "sun"))),
)
rolls = st.sampled_from(("drop", "next", "previous"))
observed = st.builds(Cron, expressions, zones, holidays=holidays, roll=rolls)
unions = st.lists(singles, min_size=1, max_size=3).map(Union)
schedules: st.SearchStrategy[Once | Every | Cron | Calendar | Union] = st.one_of(
    singles, observed, unions
)


@LAWS
@given(schedules, instants)
def test_fire_times_strictly_increase(schedule: Schedule, after: datetime) -> None:
    fires = list(islice(schedule.fires(after), 15))
    assert all(fire.at > after for fire in fires)
    assert all(a.at < b.at for a, b in pairwise(fires))
    assert all(fire.at == fire.local for fire in fires)


@LAWS
@given(schedules, instants, st.integers(0, 14), st.timedeltas(timedelta(0), timedelta(hours=3)))
def test_asking_from_any_instant_gives_the_same_later_fires(
    schedule: Schedule, after: datetime, skipped: int, ahead: timedelta
) -> None:
    fires = list(islice(schedule.fires(after), 15))
    for start in [fires[skipped].at] if skipped < len(fires) else []:
        again = list(islice(schedule.fires(start), 14 - skipped))
        assert again == fires[skipped + 1 :]
    later = [fire for fire in fires if fire.at > after + ahead]
    assert list(islice(schedule.fires(after + ahead), len(later))) == later
    if fires:
        assert schedule.next_after(after) == fires[0]
        assert schedule.next_after(fires[0].at - timedelta(microseconds=1)) == fires[0]


@LAWS
@given(schedules, instants, st.lists(st.integers(0, 400), min_size=3, max_size=3))
def test_a_range_is_the_sum_of_its_parts(
    schedule: Schedule, start: datetime, hours: list[int]
) -> None:
    a, b, c = (start + timedelta(hours=n) for n in sorted(hours))
    parts = [*islice(schedule.between(a, b), 3000), *islice(schedule.between(b, c), 3000)]
    whole = list(islice(schedule.between(a, c), 3000))
    assert parts[: len(whole)] == whole
    assert len(parts) == len(whole) or len(whole) == 3000


@LAWS
@given(zones, fixed_hours, instants, st.sampled_from(("first", "second")))
def test_a_fixed_daily_time_fires_once_for_each_date(
    zone: str, at: tuple[int, int], after: datetime, fold: Fold
) -> None:
    minute, hour = at
    schedule = Cron(f"{minute} {hour} * * *", zone, fold=fold)
    days = [fire.nominal.date().toordinal() for fire in schedule.upcoming(after, 500)]
    assert days == list(range(days[0], days[0] + 500))


@LAWS
@given(zones, instants)
def test_whole_days_that_keep_the_local_hour_fire_once_for_each_date(
    zone: str, anchor: datetime
) -> None:
    schedule = Every(86_400, anchor, zone=zone, keep_local_hour=True)
    fires = schedule.upcoming(anchor + timedelta(days=1), 400)
    days = [fire.nominal.date().toordinal() for fire in fires]
    assert days == list(range(days[0], days[0] + 400))
    assert len({fire.nominal.time() for fire in fires}) == 1


@LAWS
@given(schedules, instants)
def test_the_json_form_says_it_all(schedule: Schedule, after: datetime) -> None:
    told = json.loads(json.dumps(schedule.to_json()))
    again = schedule_from_json(told)
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.to_json() == told
    assert again.upcoming(after, 5) == schedule.upcoming(after, 5)


@LAWS
@given(crons, holidays, st.sampled_from(("next", "previous")), instants)
def test_rolled_fires_are_the_fires_moved_one_by_one(
    cron: Cron, calendar: HolidayCalendar, roll: str, after: datetime
) -> None:
    """The reference moves each fire time of the surroundings to its day and sorts."""
    step = 1 if roll == "next" else -1
    rolled = cron.model_copy(update={"holidays": calendar, "roll": roll})
    until = after + timedelta(days=20)
    surroundings = list(
        islice(cron.between(after - timedelta(days=30), until + timedelta(days=30)), 4000)
    )
    if len(surroundings) == 4000:
        return
    expected: dict[datetime, datetime] = {}
    for fire in surroundings:
        day = calendar.following(fire.nominal.date(), step)
        assert day is not None
        if day == fire.nominal.date():
            expected[fire.at] = fire.nominal
        else:
            moved = Once(datetime.combine(day, fire.nominal.time()), cron.zone).next_after(
                datetime(1800, 1, 1, tzinfo=UTC)
            )
            assert moved is not None
            if not moved.note.endswith("before the gap"):
                expected[moved.at] = fire.nominal
    moved_into_gaps = {fire.at for fire in rolled.between(after, until) if fire.at not in expected}
    assert {at for at in expected if after < at <= until} == {
        fire.at for fire in rolled.between(after, until)
    } - moved_into_gaps
