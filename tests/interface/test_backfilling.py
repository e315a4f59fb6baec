"""Backfills: with the job as it was then, once under each key, at the order and rate asked for."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horolog import (
    Cron,
    Every,
    InvalidPolicy,
    NotAllowed,
    Permanent,
    Run,
    Scheduler,
    VersionConflict,
    Worker,
)
from horolog.application.commands.context import Context
from horolog.application.decision import Decision
from horolog.application.log import Appended
from horolog.testing import SimulatedScheduler

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SOON = START + timedelta(minutes=1)
"""The anchor of an interval that is registered at START is a fire time, and not one of the job."""
Seen = list[tuple[datetime, str]]


@pytest.fixture
def seen() -> Seen:
    """The fire time and the payload's ``what`` of each run, in the order in which they ran."""
    return []


@pytest.fixture
def simulated(seen: Seen) -> Generator[SimulatedScheduler]:
    worker = Worker()

    @worker.handles("report")
    def report(run: Run, what: str = "") -> None:
        seen.append((run.fire_time, what))
        if what == "broken":
            raise Permanent("broken")

    with SimulatedScheduler(worker, start=START) as scheduler:
        yield scheduler
        assert [str(v) for v in scheduler.verify().violations] == []


def hours(seen: Seen) -> list[tuple[float, str]]:
    return [((fire - START) / HOUR, what) for fire, what in seen]


def test_each_instant_has_the_definition_that_was_in_force(
    simulated: SimulatedScheduler, seen: Seen
) -> None:
    job = simulated.register("report", schedule=Every(3600), payload={"what": "first"})
    simulated.pause(job.id)
    simulated.outage(hours=2, minutes=30)
    simulated.update(job.id, payload={"what": "second"})
    simulated.outage(hours=2, minutes=10)
    simulated.reschedule(job.id, Every(1800, anchor=START))
    simulated.outage(hours=1)
    simulated.update(job.id, payload={"what": "third"})
    simulated.resume(job.id)
    planned = simulated.backfill(job.id, SOON, simulated.now, dry_run=True)
    assert [run.definition_version for run in planned] == [1, 1, 3, 3, 5, 5]
    assert simulated.position() == simulated.log(limit=1000)[-1].position
    assert simulated.backfill(job.id, SOON, simulated.now, reason="late") == 6
    simulated.update(job.id, payload={"what": "fourth"})
    simulated.run_due()
    assert hours(seen) == [
        (1, "first"), (2, "first"), (3, "second"), (4, "second"), (5, "second"), (5.5, "second"),
    ]  # fmt: skip
    assert simulated.backfill(job.id, SOON, simulated.now) == 0


def test_the_present_definition_runs_where_it_is_asked_for(
    simulated: SimulatedScheduler, seen: Seen
) -> None:
    job = simulated.register("report", schedule=Every(3600), payload={"what": "first"})
    simulated.advance(hours=3)
    seen.clear()
    simulated.reschedule(job.id, Every(1800, anchor=START))
    simulated.update(job.id, payload={"what": "present"})
    assert simulated.backfill(job.id, SOON, simulated.now, definition="current") == 3
    simulated.run_due()
    assert hours(seen) == [(n, "present") for n in (0.5, 1.5, 2.5)]


def test_a_schedule_that_changes_meanwhile_has_no_run_of_the_one_before(
    simulated: SimulatedScheduler, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = simulated.register("report", schedule=Every(3600))
    simulated.pause(job.id)
    simulated.outage(hours=2, minutes=30)
    simulated.resume(job.id)
    accepts = Context.accepts

    def after_another_change(context: Context, decision: Decision) -> Appended | None:
        monkeypatch.undo()
        simulated.reschedule(job.id, Every(5400, anchor=START))
        return accepts(context, decision)

    monkeypatch.setattr(Context, "accepts", after_another_change)
    with pytest.raises(VersionConflict, match="ask again"):
        simulated.backfill(job.id, SOON, simulated.now, definition="current")
    assert simulated.log(topics="job.backfill_requested") == []
    assert simulated.backfill(job.id, SOON, simulated.now, definition="current") == 1


def test_retries_of_a_run_keep_its_definition(simulated: SimulatedScheduler, seen: Seen) -> None:
    job = simulated.register("report", schedule=Every(3600), payload={"what": "broken"})
    simulated.pause(job.id)
    simulated.outage(minutes=70)
    simulated.update(job.id, payload={"what": "mended"})
    simulated.resume(job.id)
    assert simulated.backfill(job.id, SOON, simulated.now) == 1
    simulated.run_due()
    (letter,) = simulated.dead_letters()
    simulated.replay(letter.id)
    simulated.run_due()
    assert hours(seen) == [(1, "broken"), (1, "broken")]


def test_before_its_registration_a_job_was_what_it_was_registered_as(
    simulated: SimulatedScheduler, seen: Seen
) -> None:
    job = simulated.register("report", schedule=Cron("0 * * * *", "UTC"), payload={"what": "first"})
    simulated.update(job.id, payload={"what": "second"})
    assert simulated.backfill(job.id, START - 3 * HOUR, START - HOUR) == 3
    simulated.run_due()
    assert hours(seen) == [(-3, "first"), (-2, "first"), (-1, "first")]


def test_what_has_run_runs_again_only_where_it_is_asked_for(
    simulated: SimulatedScheduler, seen: Seen
) -> None:
    job = simulated.register("report", schedule=Every(3600), payload={"what": "fine"})
    simulated.advance(hours=2)
    simulated.update(job.id, payload={"what": "broken"})
    simulated.advance(hours=2)
    simulated.update(job.id, payload={"what": "mended"})
    seen.clear()

    def again(**asked: Any) -> list[float]:
        began = len(seen)
        simulated.backfill(job.id, SOON, simulated.now, definition="current", **asked)
        simulated.run_due()
        return [hour for hour, _ in hours(seen[began:])]

    assert again() == []
    assert again(reprocess="failed", request_id="r") == [3, 4]
    assert again(reprocess="failed", request_id="r") == []
    assert again(reprocess="failed", request_id="s") == [], "they have succeeded by now"
    assert again(reprocess="all", request_id="all") == [1, 2, 3, 4]
    assert again(reprocess="all", request_id="all") == []
    assert again(reprocess="all") == [1, 2, 3, 4]
    found = simulated.occurrences(job_id=job.id)
    assert len({o.id for o in found}) == len(found) == 4 + 2 + 4 + 4
    assert {what for _, what in seen} == {"mended"}


def test_what_is_not_over_is_not_run_again(simulated: SimulatedScheduler) -> None:
    job = simulated.register("report", schedule=Every(3600))
    simulated.advance(minutes=10)
    simulated.pause(job.id)
    simulated.outage(hours=2)
    assert simulated.backfill(job.id, SOON, simulated.now, rate=0.001) == 0
    simulated.resume(job.id)
    assert simulated.backfill(job.id, SOON, simulated.now, rate=0.001) == 2
    assert simulated.backfill(job.id, SOON, simulated.now, reprocess="all") == 0


def test_runs_begin_newest_first_and_as_many_a_second_as_asked(
    simulated: SimulatedScheduler, seen: Seen
) -> None:
    job = simulated.register("report", schedule=Every(3600))
    simulated.pause(job.id)
    simulated.outage(hours=5)
    simulated.resume(job.id)
    planned = simulated.backfill(job.id, SOON, simulated.now, reverse=True, dry_run=True)
    assert [run.fire_time for run in planned] == [START + n * HOUR for n in (5, 4, 3, 2, 1)]
    began = simulated.now
    assert simulated.backfill(job.id, SOON, simulated.now, reverse=True, rate=0.5) == 5
    simulated.advance(minutes=1)
    assert [hour for hour, _ in hours(seen)] == [5, 4, 3, 2, 1]
    found = simulated.occurrences(job_id=job.id, newest_first=True)
    assert [o.finished_at for o in found] == [began + timedelta(seconds=2 * n) for n in range(5)]
    assert [o.jittered_at for o in found] == [o.finished_at for o in found]


def test_a_limit_of_runs_is_kept(simulated: SimulatedScheduler) -> None:
    job = simulated.register("report", schedule=Every(3600, anchor=START - 9 * HOUR, limit=3))
    simulated.advance(hours=9)
    assert simulated.job(job.id).status == "completed"
    assert simulated.backfill(job.id, START - 9 * HOUR, simulated.now) == 0


def test_what_cannot_be_asked_is_refused_and_leaves_no_event(
    simulated: SimulatedScheduler,
) -> None:
    job = simulated.register("report", schedule=Every(3600)).id
    before = simulated.position()
    for asked, said in (
        ({"rate": 0.0}, "rate=0"),
        ({"rate": 1e9}, "up to 1000"),
        ({"reprocess": "some"}, "there are none, failed, all"),
        ({"definition": "later"}, "there are then, current"),
        ({"request_id": ""}, "request_id=''"),
    ):
        options: Any = asked
        with pytest.raises(InvalidPolicy, match=said):
            simulated.backfill(job, START, START, **options)
    assert simulated.position() == before
    simulated.cancel(job)
    with pytest.raises(NotAllowed):
        simulated.backfill(job, START, START)


def test_on_the_real_log_a_run_has_the_definition_of_its_time(
    scheduler: Scheduler, stage: Any
) -> None:
    now = stage.now()
    job = scheduler.register(
        "report", schedule=Every(60, anchor=now - HOUR), payload={"what": "first"}
    )
    scheduler.update(job.id, payload={"what": "second"})
    assert scheduler.backfill(job.id, now - HOUR, now - HOUR + timedelta(minutes=2)) == 3
    first, second, third = scheduler.occurrences(job_id=job.id)
    (due,) = stage.states.due([first.id])
    assert due.job.definition.payload == {"what": "first"}
    assert due.job.version == scheduler.job(job.id).version
    retrying = stage.fail(stage.attempt(stage.claim(first.id)), retry_in_s=0)
    assert retrying.definition_version == 1
    (due,) = stage.states.due([first.id])
    assert due.job.definition.payload == {"what": "first"}
    assert stage.states.occurrence(first.id).definition_version == 1
    stage.succeed(stage.attempt(stage.claim(first.id)))
    stage.fail(stage.attempt(stage.claim(second.id)))
    until = now - HOUR + timedelta(minutes=2)
    (again,) = scheduler.backfill(
        job.id, now - HOUR, until, reprocess="failed", request_id="r", dry_run=True
    )
    assert (again.fire_time, again.again) == (second.fire_time, True)
    assert third.state == "scheduled"
