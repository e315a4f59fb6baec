"""The checker's own answers for schedules that are quick to compute are those of the domain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from horolog.application.verify.said import TICK, Instant, Interval, Kept, Said, kept, said_by
from horolog.domain.job import first_fire
from horolog.domain.schedule import Cron, Every, Once, Schedule, tzdata_version

LAWS = settings(max_examples=60, deadline=None)
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
BERLIN = "Europe/Berlin"

moments = st.timedeltas(timedelta(days=-40), timedelta(days=40)).map(lambda ahead: NOON + ahead)


def interval(
    seconds: float,
    anchor: datetime,
    start: datetime | None,
    length: timedelta | None,
    limit: int | None,
) -> Every:
    end = None if length is None else max(start or anchor, anchor) + length
    return Every(seconds, anchor, start=start, end=end, limit=limit)


def cron(expression: str) -> Cron:
    return Cron(expression, BERLIN)


intervals = st.builds(
    interval,
    st.sampled_from((0.1, 0.25, 7, 60, 3600, 86_400, 31 * 86_400)),
    moments,
    st.none() | moments,
    st.none() | st.timedeltas(timedelta(0), timedelta(days=20)),
    st.none() | st.integers(1, 9),
)
instants = st.builds(Once, moments)
crons = st.sampled_from(("*/7 * * * *", "30 2 * * *", "0 0 1 * *")).map(cron)
schedules: st.SearchStrategy[Every | Once | Cron] = st.one_of(intervals, instants, crons)


def said_of(schedule: Schedule) -> Said:
    said = said_by(kept(schedule.to_json()), tzdata_version())
    assert said is not None
    return said


def domain_says(schedule: Schedule, instant: datetime) -> datetime | None:
    fire = schedule.next_after(instant)
    return None if fire is None else fire.at


@LAWS
@given(schedules, moments, st.integers(1, 12))
@example(Every(60, NOON), NOON - TICK, 1)
@example(Every(60, NOON, end=NOON), NOON, 1)
@example(Every(100 * 366 * 86_400, NOON, end="9998-12-31T00:00:00Z"), NOON.replace(year=9900), 9)
def test_the_fire_times_are_those_of_the_domain(
    schedule: Schedule, asked: datetime, fires: int
) -> None:
    said, begun = said_of(schedule), asked
    assert said.first_from(asked) == first_fire(schedule, asked)
    for number in range(fires):
        right = domain_says(schedule, asked)
        assert said.after(asked) == said.after(asked) == right
        limited = schedule.limit is not None and number >= schedule.limit
        assert said.following(asked, number) == (None if limited else right)
        if right is None:
            break
        assert said.has(right)
        assert said.has(right + TICK) == (domain_says(schedule, right) == right + TICK)
        asked = right
    until = min(asked, begun + timedelta(minutes=5))
    held = [fire.at for fire in schedule.between(begun - TICK, until)]
    assert said.count(begun, until) == len(held)


@pytest.mark.parametrize(
    ("schedule", "kind"),
    [
        (Every(60, NOON), Interval),
        (Every(60, NOON, zone=BERLIN, jitter=3, limit=4, start=NOON, end=NOON), Interval),
        (Every(86_400, NOON, zone=BERLIN, keep_local_hour=True), str),
        (Every(60, NOON, exclude=["2027-03-02"]), str),
        (Every(60), str),
        (Once(NOON), Instant),
        (Once("2027-03-28T02:30:00", BERLIN), str),
        (Once(NOON, start=NOON), str),
        (Cron("0 * * * *", BERLIN), str),
    ],
)
def test_only_what_looks_at_no_clock_but_elapsed_time_is_computed_here(
    schedule: Schedule, kind: type[Kept]
) -> None:
    assert isinstance(kept(schedule.to_json()), kind)


@pytest.mark.parametrize(
    "changes", [{"seconds": 0}, {"seconds": "60"}, {"limit": 0}, {"anchor": "noon"}, {"end": None}]
)
def test_what_no_interval_should_state_is_left_to_the_domain(
    changes: dict[str, object],
) -> None:
    assert isinstance(kept(Every(60, NOON).to_json() | changes), str)


def test_jobs_that_ask_by_turns_get_their_own_answers() -> None:
    said, minute = said_of(Cron("* * * * *", BERLIN)), timedelta(minutes=1)
    for asked in (0, 5, 1, 6, 6, 2, 7, 0):
        assert said.after(NOON + asked * minute) == NOON + (asked + 1) * minute
