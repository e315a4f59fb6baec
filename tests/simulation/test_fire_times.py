"""Whatever is done to a job and whatever outage comes, each of its fire times ends in the log once.

Short lives of a job around a night on which the clock is set: advances, outages, pauses, changes,
extra runs. The account is taken twice: by the verifier, and by the naive one below, which lists the
fire times of each schedule while it was in force and looks each of them up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog import Calendar, Cron, Every, NotAllowed, Once, Schedule, Union
from horolog.domain.job_events import FiresSkipped, Registered, Rescheduled
from horolog.domain.occurrence_events import Claimed
from horolog.domain.schedule import schedule_from_json
from horolog.testing import SimulatedScheduler

NEW_YORK = "America/New_York"
NIGHTS = {
    "spring": datetime(2027, 3, 14, 4, tzinfo=UTC),
    "autumn": datetime(2027, 11, 7, 3, tzinfo=UTC),
}
SCHEDULES: list[Schedule] = [
    Every(420),
    Every(3600, jitter=1800),
    Every(900, limit=5),
    Cron("*/20 * * * *", NEW_YORK),
    Cron("30 1,2,3 * * *", NEW_YORK),
    Cron("*/15 1-2 * * *", NEW_YORK, fold="both"),
    Cron("5,35 * * * *", NEW_YORK, gap="skip", limit=30),
    Cron("0 * * * *", "UTC", exclude=["2027-03-14T06:00:00+00:00", "2027-11-07T05:00:00+00:00"]),
    Calendar("FREQ=DAILY;BYHOUR=0,1,2,3,4;BYMINUTE=30", NEW_YORK, gap="skip"),
    Union([Cron("10 * * * *", "Europe/Berlin"), Every(3000)]),
]

minutes = st.integers(0, 240)
chosen = st.sampled_from(SCHEDULES)
Step = tuple[Any, ...]
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("advance"), minutes),
    st.tuples(st.just("outage"), minutes),
    st.tuples(st.just("pause")),
    st.tuples(st.just("resume"), st.booleans()),
    st.tuples(st.just("reschedule"), chosen),
    st.tuples(st.just("once"), minutes),
    st.tuples(st.just("catch_up"), st.sampled_from(["latest", "earliest", "all", "skip"])),
    st.tuples(st.just("overlap"), st.sampled_from(["allow", "skip", "buffer_one", "buffer_all"])),
    st.tuples(st.just("window"), st.sampled_from([60.0, 3600.0, 86_400.0])),
    st.tuples(st.just("trigger")),
    st.tuples(st.just("cancel")),
)


def do(scheduler: SimulatedScheduler, job: Any, step: Step) -> None:
    match step:
        case ("advance", many):
            scheduler.advance(minutes=many, seconds=7)
        case ("outage", many):
            scheduler.outage(minutes=many, seconds=11)
        case ("pause",):
            scheduler.pause(job)
        case ("resume", catch_up):
            scheduler.resume(job, catch_up=catch_up)
        case ("reschedule", schedule):
            scheduler.reschedule(job, schedule)
        case ("once", many):
            scheduler.reschedule(job, Once(scheduler.now + timedelta(minutes=many)))
        case ("catch_up", policy):
            scheduler.update(job, catch_up=policy)
        case ("overlap", policy):
            scheduler.update(job, overlap=policy)
        case ("window", seconds):
            scheduler.update(job, catch_up_window=seconds)
        case ("trigger",):
            scheduler.trigger(job)
        case _:
            scheduler.cancel(job)


@dataclass
class Era:
    """A schedule while it was in force, and what became of its fire times."""

    schedule: Schedule
    first: datetime | None
    claimed: list[datetime] = field(default_factory=list[datetime])
    dropped: list[tuple[datetime, datetime]] = field(
        default_factory=list[tuple[datetime, datetime]]
    )

    def check(self, until: datetime | None) -> None:
        """Each fire time up to the last one that is accounted for, and up to ``until``, is once."""
        ends = [*self.claimed, *(last for _, last in self.dropped), *([until] if until else [])]
        assert len(set(self.claimed)) == len(self.claimed)
        if self.first is None or not ends:
            return
        moment = timedelta(microseconds=1)
        stated = [fire.at for fire in self.schedule.between(self.first - moment, max(ends))]
        if self.schedule.limit is not None:
            stated = stated[: self.schedule.limit]
        for fire in stated:
            accounts = self.claimed.count(fire)
            accounts += sum(first <= fire <= last for first, last in self.dropped)
            assert accounts == 1, (fire, accounts, self)
        assert set(self.claimed) <= set(stated), self


def eras(scheduler: SimulatedScheduler) -> None:
    """Takes the naive account; raises where a fire time has none, or more than one."""
    era: Era | None = None
    for logged in scheduler.log(limit=10_000):
        match logged.event:
            case Registered() as event:
                era = Era(schedule_from_json(event.definition.schedule), event.next_fire)
            case Rescheduled() as event:
                assert era is not None
                # A one-off that is ordered for this very moment has not come due yet.
                era.check(logged.recorded_at)
                era = Era(schedule_from_json(event.schedule), event.next_fire)
            case Claimed(kind="schedule", attempt=1) as event:
                assert era is not None
                era.claimed.append(event.fire_time)
            case FiresSkipped() as event if event.cause not in ("calendar", "gap"):
                assert era is not None
                era.dropped.append((event.first, event.last))
            case _:
                pass
    assert era is not None
    era.check(None)


@pytest.mark.parametrize("night", NIGHTS)
@settings(max_examples=250)
@given(
    schedule=chosen,
    life=st.lists(steps, min_size=3, max_size=14),
    takes=st.sampled_from([0, 0, 700, 9000]),
)
def test_every_fire_time_ends_in_the_log_once(
    night: str, schedule: Schedule, life: list[Step], takes: float
) -> None:
    with SimulatedScheduler(start=NIGHTS[night], takes={"report": takes}) as scheduler:
        job = scheduler.register("report", schedule=schedule).id
        for step in life:
            try:
                do(scheduler, job, step)
            except NotAllowed:
                break
        eras(scheduler)
        report = scheduler.verify()
        assert [str(violation) for violation in report.violations] == []
