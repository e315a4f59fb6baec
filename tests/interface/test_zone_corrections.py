"""When a country changes its clocks: which waiting fire times move, where to, and what is said."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horolog import Calendar, Cron, Every, Once, Scheduler
from horolog.application.verify import verify
from horolog.domain.schedule import tzdata_version
from horolog.domain.schedule.zone_data import other_release, zone_bytes
from horolog.domain.zone_correction import corrected_fire
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.testing import SimulatedScheduler

BERLIN = "Europe/Berlin"
START = datetime(2027, 7, 1, 12, tzinfo=UTC)
NINE = Cron("0 9 * * *", BERLIN)


def utc(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2027, 7, day, hour, minute, tzinfo=UTC)


@pytest.fixture
def no_summer_time() -> Any:
    """A release in which Berlin stays at +01:00 the year round: an hour behind what it was."""
    return lambda: other_release("2027z", {BERLIN: zone_bytes("Etc/GMT-1")})


@pytest.fixture
def double_summer_time() -> Any:
    """A release in which Berlin is at +03:00: an hour ahead of what it was."""
    return lambda: other_release("2027z", {BERLIN: zone_bytes("Etc/GMT-3")})


@pytest.fixture
def simulated() -> Generator[SimulatedScheduler]:
    with SimulatedScheduler(start=START) as scheduler:
        yield scheduler


def test_other_zone_data_is_used_at_once_and_left_again(no_summer_time: Any) -> None:
    once = Once(datetime(2027, 7, 2, 9), BERLIN)  # noqa: DTZ001
    present = tzdata_version()
    for schedule in (NINE, once):
        before = schedule.next_after(START)
        assert before is not None
        assert before.at == utc(2, 7)
        with no_summer_time():
            assert tzdata_version() == "2027z"
            moved = schedule.next_after(START)
            assert moved is not None
            assert moved.at == utc(2, 8)
        assert schedule.next_after(START) == before
    assert tzdata_version() == present


def test_the_jobs_that_move_are_listed_and_nothing_is_changed(
    simulated: SimulatedScheduler, no_summer_time: Any
) -> None:
    nine = simulated.register("report", schedule=NINE, key="nine")
    simulated.register("report", schedule=Cron("0 9 * * *", "Asia/Tokyo"))
    simulated.register("report", schedule=Cron("0 * * * *", BERLIN))
    simulated.register("report", schedule=Every(3600))
    paused = simulated.register("report", schedule=Calendar("FREQ=DAILY;BYHOUR=9", BERLIN))
    simulated.pause(paused.id)
    before = simulated.position()
    present = tzdata_version()
    assert simulated.zone_corrections() == []
    with no_summer_time():
        found = simulated.zone_corrections(following=2)
        assert {one.job_id for one in found} == {nine.id, paused.id}
        one = next(one for one in found if one.job_id == nine.id)
        assert (one.key, one.zone, one.recorded, one.corrected) == (
            "nine", BERLIN, utc(2, 7), utc(2, 8),
        )  # fmt: skip
        assert one.recorded_with == present
        assert [fire.at for fire in one.fires] == [utc(2, 8), utc(3, 8)]
        assert one.fires[0].local.hour == 9
        assert one.to_dict()["corrected"] == "2027-07-02T08:00:00+00:00"
        pages = [
            simulated.zone_corrections(limit=1),
            simulated.zone_corrections(after=found[0].job_id),
        ]
        assert [page[0].job_id for page in pages] == [one.job_id for one in found]
    assert simulated.position() == before


def test_a_correction_moves_the_next_fire_and_is_an_event(
    simulated: SimulatedScheduler, no_summer_time: Any
) -> None:
    job = simulated.register("report", schedule=NINE)
    simulated.advance(days=2)
    with no_summer_time():
        assert len(simulated.zone_corrections(apply=True, reason="no more summer time")) == 1
        assert simulated.job(job.id).next_run == utc(4, 8)
        event = simulated.history(job.id)[-1]
        assert event.topic == "job.zone_data_changed.1"
        assert event.data == {"next_fire": "2027-07-04T08:00:00Z", "tzdata": "2027z"}
        assert event.reason == "no more summer time"
        assert simulated.zone_corrections(apply=True) == []
        assert simulated.history(job.id)[-1] == event
        simulated.advance(days=2)
        fires = [o.fire_time for o in simulated.occurrences(job_id=job.id)]
        assert fires == [utc(2, 7), utc(3, 7), utc(4, 8), utc(5, 8)]
        assert [str(v) for v in simulated.verify().violations] == []


def test_a_paused_job_is_corrected_where_its_schedule_is_held(
    simulated: SimulatedScheduler, no_summer_time: Any
) -> None:
    job = simulated.register("report", schedule=NINE)
    simulated.pause(job.id)
    with no_summer_time():
        simulated.zone_corrections(apply=True)
        assert simulated.job(job.id).status == "paused"
        simulated.resume(job.id)
        assert simulated.job(job.id).next_run == utc(2, 8)
        assert simulated.verify().ok


def test_without_a_correction_the_log_is_whole_all_the_same(
    simulated: SimulatedScheduler, no_summer_time: Any
) -> None:
    job = simulated.register("report", schedule=NINE)
    with no_summer_time():
        simulated.advance(days=3)
        fires = [o.fire_time for o in simulated.occurrences(job_id=job.id)]
        assert fires == [utc(2, 7), utc(2, 8), utc(3, 8), utc(4, 8)]
        assert [str(v) for v in simulated.verify().violations] == []


def test_a_fire_time_that_moves_into_the_past_runs_at_once(
    simulated: SimulatedScheduler, double_summer_time: Any
) -> None:
    job = simulated.register("report", schedule=NINE)
    simulated.advance(to=utc(2, 6, 30))
    with double_summer_time():
        simulated.zone_corrections(apply=True)
        assert simulated.run_due() == 1
        assert simulated.occurrences(job_id=job.id)[0].fire_time == utc(2, 6)


@pytest.mark.parametrize(
    ("schedule", "recorded", "last", "right"),
    [
        (NINE, utc(2, 7), None, utc(2, 8)),
        (NINE, utc(2, 8), None, utc(2, 8)),
        (NINE, utc(2, 7), utc(1, 8), utc(2, 8)),
        (Cron("0 9,10 * * *", BERLIN), utc(2, 8), utc(2, 7), utc(2, 8)),
        (Once(datetime(2027, 7, 2, 9), BERLIN), utc(2, 7), None, utc(2, 8)),  # noqa: DTZ001
        (Cron("30 0 * * *", BERLIN), utc(1, 22, 30), None, utc(1, 23, 30)),
    ],
)
def test_what_a_fire_time_becomes(
    no_summer_time: Any, schedule: Any, recorded: datetime, last: datetime | None, right: datetime
) -> None:
    with no_summer_time():
        assert corrected_fire(schedule, recorded, last) == right


def test_what_was_used_up_is_not_taken_again(double_summer_time: Any) -> None:
    schedule = Cron("0 9,10 * * *", BERLIN)
    with double_summer_time():
        assert corrected_fire(schedule, utc(2, 8), None) == utc(2, 7)
        assert corrected_fire(schedule, utc(2, 8), utc(2, 7)) == utc(3, 6)


def test_on_the_real_log_the_correction_is_kept(scheduler: Scheduler, stage: Any) -> None:
    job = scheduler.register("report", schedule=NINE)
    fired = stage.claim_fire(job.id)
    recorded = scheduler.job(job.id).next_run
    assert recorded is not None
    winter = scheduler.job(job.id).schedule.upcoming(recorded - timedelta(seconds=1), 1)[0]
    hours = 1 if winter.local.utcoffset() == timedelta(hours=2) else 0
    with other_release("2027z", {BERLIN: zone_bytes("Etc/GMT-4")}):
        (found,) = scheduler.zone_corrections(apply=True)
        right = recorded - timedelta(hours=3 - hours)
        assert (found.recorded, found.corrected) == (recorded, right)
        assert scheduler.job(job.id).next_run == right > fired.fire_time
        assert scheduler.zone_corrections() == []
        assert [str(v) for v in verify(PostgresLogScan(stage.database)).violations] == []
