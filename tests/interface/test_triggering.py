"""Extra runs: triggers that may be repeated, and backfills that never run anything twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from horolog import Every, InvalidPolicy, InvalidSchedule, Once, Scheduler

if TYPE_CHECKING:
    from tests.interface.conftest import Stage


def test_a_trigger_orders_one_run_beside_the_schedule(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("a", schedule=Every(60))
    occurrence = scheduler.trigger(job.id, reason="by hand")
    assert (occurrence.state, occurrence.kind, occurrence.attempt) == ("scheduled", "trigger", 0)
    assert abs(occurrence.fire_time - stage.now()) < timedelta(seconds=30)
    assert scheduler.job(job.id).next_run == job.next_run
    (event,) = scheduler.history(job.id, after=1)
    assert (event.topic, event.reason) == ("job.triggered.1", "by hand")
    ended = stage.succeed(stage.attempt(stage.claim(occurrence.id)), {"ok": True})
    found = scheduler.occurrence(ended.id)
    assert (found.state, found.result, found.kind) == ("succeeded", {"ok": True}, "trigger")


def test_the_same_request_is_the_same_run(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("a", schedule=Every(60))
    other = scheduler.register("a", schedule=Every(60))
    first = scheduler.trigger(job.id, request_id="r-1")
    before = stage.events()
    assert scheduler.trigger(job.id, request_id="r-1").id == first.id
    later = stage.now() + timedelta(hours=1)
    assert scheduler.trigger(job.id, at=later, request_id="r-1").id == first.id
    assert stage.events() == before
    assert scheduler.trigger(job.id, request_id="r-2").id != first.id
    assert scheduler.trigger(other.id, request_id="r-1").id != first.id
    stage.succeed(stage.attempt(stage.claim(first.id)))
    assert scheduler.trigger(job.id, request_id="r-1").state == "succeeded"


def test_twenty_of_the_same_request_at_once_are_one_run(scheduler: Scheduler) -> None:
    job = scheduler.register("a", schedule=Every(60))

    def order(_: int) -> UUID:
        return scheduler.trigger(job.id, request_id="r").id

    with ThreadPoolExecutor(20) as threads:
        ids = set(threads.map(order, range(20)))
    assert len(ids) == 1
    assert len(scheduler.occurrences(job_id=job.id)) == 1


def test_triggers_without_a_request_are_runs_of_their_own(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    at = stage.now() + timedelta(hours=1)
    ids = {scheduler.trigger(job.id, at=at).id for _ in range(5)}
    assert len(ids) == 5
    assert {o.fire_time for o in scheduler.occurrences(job_id=job.id)} == {at}


def test_a_paused_and_a_completed_job_can_be_triggered(scheduler: Scheduler, stage: Stage) -> None:
    paused = scheduler.pause(scheduler.register("a", schedule=Every(60)).id)
    assert scheduler.trigger(paused.id).state == "scheduled"
    assert scheduler.job(paused.id).status == "paused"


def test_a_trigger_that_cannot_be_says_why(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("a", schedule=Every(60))
    before = stage.events()
    with pytest.raises(InvalidSchedule, match="has no zone"):
        scheduler.trigger(job.id, at=datetime(2030, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidSchedule, match="1970 to 9998"):
        scheduler.trigger(job.id, at=stage.now().replace(year=1960))
    for request in ("", "x" * 300, "a\x00"):
        with pytest.raises(InvalidPolicy, match="request_id="):
            scheduler.trigger(job.id, request_id=request)
    assert stage.events() == before


@pytest.mark.parametrize("moment", ["2026-12-01T00:00:00+00:00", 5, date(2027, 1, 1)])
def test_what_is_no_instant_is_refused_in_words(scheduler: Scheduler, moment: Any) -> None:
    job, now = scheduler.register("a", schedule=Every(60)), datetime.now(UTC)
    for asks in (
        lambda: scheduler.trigger(job.id, at=moment),
        lambda: scheduler.backfill(job.id, moment, now),
        lambda: scheduler.backfill(job.id, now, moment),
        lambda: scheduler.occurrences(since=moment),
    ):
        with pytest.raises(InvalidSchedule, match="give a datetime with a zone"):
            asks()
    with pytest.raises(InvalidPolicy, match="request_id='5'"):
        scheduler.trigger(job.id, request_id=5)  # pyright: ignore[reportArgumentType]


def test_a_backfill_orders_the_fire_times_that_have_no_run(
    scheduler: Scheduler, stage: Stage
) -> None:
    now = stage.now()
    start = now - timedelta(minutes=10)
    job = scheduler.register("a", schedule=Every(60, anchor=start))
    assert scheduler.backfill(job.id, start, now, reason="new report") == 11
    ordered = scheduler.occurrences(job_id=job.id)
    assert [o.fire_time for o in ordered] == [start + timedelta(minutes=n) for n in range(11)]
    assert {(o.kind, o.state) for o in ordered} == {("backfill", "scheduled")}
    assert scheduler.backfill(job.id, start, now) == 0

    stage.succeed(stage.attempt(stage.claim(ordered[0].id)))
    assert scheduler.backfill(job.id, start - timedelta(days=1), now) == 0
    (event,) = [e for e in scheduler.history(job.id) if e.topic == "job.backfill_requested.1"]
    assert (event.reason, len(event.data["fires"])) == ("new report", 11)


def test_what_the_schedule_fired_is_not_backfilled(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("a", schedule=Every(0.1))
    fired = stage.claim_fire(job.id)
    after = fired.fire_time + timedelta(seconds=60)
    assert scheduler.backfill(job.id, fired.fire_time, after) == 0


def test_fire_times_that_lie_ahead_are_left_to_the_schedule(
    scheduler: Scheduler, stage: Stage
) -> None:
    now = stage.now()
    job = scheduler.register("a", schedule=Every(60, anchor=now - timedelta(minutes=3)))
    ordered = scheduler.backfill(job.id, now - timedelta(minutes=5), now + timedelta(days=1))
    assert ordered in (3, 4)
    assert scheduler.job(job.id).next_run == job.next_run


def test_a_backfill_of_too_much_or_of_nothing_is_refused(
    scheduler: Scheduler, stage: Stage
) -> None:
    now = stage.now()
    job = scheduler.register("a", schedule=Every(1, anchor=now - timedelta(days=30)))
    before = stage.events()
    with pytest.raises(InvalidSchedule, match="more than 100000 fire times"):
        scheduler.backfill(job.id, now - timedelta(days=30), now)
    with pytest.raises(InvalidSchedule, match="is before start"):
        scheduler.backfill(job.id, now, now - timedelta(days=1))
    with pytest.raises(InvalidSchedule, match="has no zone"):
        scheduler.backfill(job.id, now.replace(tzinfo=None), now)
    assert stage.events() == before
    once = scheduler.register("a", schedule=Once(now + timedelta(days=1)))
    assert scheduler.backfill(once.id, now - timedelta(days=30), now) == 0
