"""What ran, what did not and why, and the figures of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from horolog import (
    Cron,
    Every,
    InvalidPolicy,
    InvalidSchedule,
    Permanent,
    Retry,
    Run,
    Scheduler,
    UnknownOccurrence,
    Worker,
)
from horolog.application.queries.statistics import quantiles
from horolog.domain.occurrence_events import Attempted, Stopped, Succeeded
from horolog.testing import SimulatedScheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.interface.conftest import Stage

    from horolog.application.answers.execution import Execution


@pytest.fixture
def stage_of_four(scheduler: Scheduler, stage: Stage) -> dict[str, UUID]:
    """A run that succeeded at once, one after a failure, a dead one, and one that still runs."""
    us = scheduler.register(
        "bill", schedule=Every(0.1), queue="money", owner="sales", labels={"region": "us"}, key="us"
    )
    eu = scheduler.register("bill", schedule=Every(0.1), labels={"region": "eu"})
    mail = scheduler.register("mail", schedule=Every(0.1))
    first = stage.succeed(stage.attempt(stage.claim_due(us.id)))
    waiting = stage.fail(stage.attempt(stage.claim_due(eu.id)), retry_in_s=0.001)
    again = stage.claim(waiting.id)
    second = stage.go_on(
        again,
        Attempted(attempt=2, lease=30.0, actor="worker-2"),
        Succeeded(attempt=2, seconds=0.25, actor="worker-2"),
    )
    dead = stage.dead(mail.id)
    running = stage.attempt(stage.claim_due(us.id))
    return {"first": first.id, "second": second.id, "dead": dead.id, "running": running.id}


def test_runs_are_chosen_by_what_they_and_their_jobs_are(
    scheduler: Scheduler, stage: Stage, stage_of_four: dict[str, UUID]
) -> None:
    names = {identity: name for name, identity in stage_of_four.items()}

    def found(**choice: object) -> set[str]:
        return {names[one.id] for one in scheduler.executions(**choice)}  # pyright: ignore[reportArgumentType]

    everything = {"first", "second", "dead", "running"}
    assert found() == everything
    assert found(name="bill") == {"first", "second", "running"}
    assert found(name="nobody") == set()
    assert found(queue="money") == {"first", "running"}
    assert found(owner="sales", state="succeeded") == {"first"}
    assert found(label="region=eu") == {"second"}
    assert found(label="region") == {"first", "second", "running"}
    assert found(job_id=scheduler.job("us").id) == {"first", "running"}
    assert found(job_id=uuid4()) == set()
    assert found(state="running") == {"running"}
    assert found(worker="worker-2") == {"second"}
    assert found(worker="worker-1") == everything
    assert found(worker="worker-1", name="mail") == {"dead"}
    assert found(state="dead") == {"dead"}
    assert found(kind="schedule") == everything
    assert found(kind="trigger") == set()
    assert found(failure="unknown") == {"second"}
    assert found(failure="permanent") == {"dead"}
    assert found(failure="lost") == set()
    run = scheduler.trigger(scheduler.job("us").id, at=datetime(2999, 1, 1, tzinfo=UTC))
    names[run.id] = "ordered"
    assert found() == everything
    assert found(state="scheduled") == {"ordered"}
    scheduler.cancel_occurrence(run.id)
    assert found() == everything
    assert found(state="skipped") == {"ordered"}
    # A run that was stopped in the middle did run.
    stopped = stage_of_four["running"]
    scheduler.cancel_occurrence(stopped)
    state = stage.states.occurrence(stopped)
    assert state is not None
    stage.go_on(state, Stopped(attempt=1, cause="cancelled", seconds=1.5, actor="worker-1"))
    assert found() == everything
    assert [one.seconds for one in scheduler.executions(state="skipped")] == [1.5, None]
    assert found(by_end=True) == {"first", "second", "dead", "running"}
    assert {skip.cause for skip in scheduler.skips()} == {"cancelled"}


def test_a_run_says_when_by_whom_how_long_and_how_late(
    scheduler: Scheduler, stage_of_four: dict[str, UUID]
) -> None:
    runs = {one.id: one for one in scheduler.executions()}
    second = runs[stage_of_four["second"]]
    events = scheduler.history(second.id)
    assert (second.name, second.queue, second.owner, second.labels) == (
        "bill",
        "default",
        None,
        {"region": "eu"},
    )
    assert (second.state, second.attempt, second.failures) == ("succeeded", 2, 1)
    assert (second.worker, second.seconds) == ("worker-2", 0.25)
    assert (second.failure, second.error) == ("unknown", "no such card")
    assert second.claimed_at == events[0].recorded_at
    assert second.began_at == events[1].recorded_at
    assert second.finished_at == events[-1].recorded_at
    assert second.late_s == (events[1].recorded_at - second.fire_time).total_seconds()
    assert second.to_dict()["late_s"] == second.late_s
    running = runs[stage_of_four["running"]]
    assert (running.finished_at, running.seconds, running.worker) == (None, None, "worker-1")


def all_pages(page: Callable[[UUID | None], list[Execution]]) -> list[UUID]:
    seen: list[UUID] = []
    while found := page(seen[-1] if seen else None):
        seen += [one.id for one in found]
    return seen


def test_runs_are_paged_by_fire_time_and_by_end(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("bill", schedule=Every(0.1))
    opened = [stage.attempt(stage.claim_due(job.id)) for _ in range(5)]
    # They end in the reverse order, and the oldest is replayed at last.
    for running in opened[:0:-1]:
        stage.succeed(running)
    dead = stage.fail(opened[0])
    scheduler.replay(dead.id)
    stage.succeed(stage.attempt(stage.claim(dead.id)))
    in_time = [running.id for running in opened]
    in_end = [*in_time[:0:-1], in_time[0]]

    assert all_pages(lambda after: scheduler.executions(after=after, limit=2)) == in_time
    by_end = all_pages(lambda after: scheduler.executions(by_end=True, after=after, limit=2))
    assert by_end == in_end
    named = all_pages(
        lambda after: scheduler.executions(by_end=True, name="bill", after=after, limit=2)
    )
    assert named == in_end

    ends = {one.id: one.finished_at for one in scheduler.executions()}
    third = ends[in_end[2]]
    assert third is not None
    late = scheduler.executions(since=third, by_end=True)
    assert [one.id for one in late] == in_end[2:]
    assert [one.id for one in scheduler.executions(until=third, by_end=True)] == in_end[:2]
    fire = opened[2].fire_time
    assert [one.id for one in scheduler.executions(since=fire)] == in_time[2:]
    assert [one.id for one in scheduler.executions(until=fire)] == in_time[:2]
    with pytest.raises(UnknownOccurrence, match="no finished occurrence"):
        scheduler.executions(by_end=True, after=uuid4())


def test_what_did_not_run_is_told_with_its_cause(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("bill", schedule=Every(0.1), owner="sales")
    other = scheduler.register("mail", schedule=Every(60))
    waiting = scheduler.trigger(other.id, at=stage.now() + timedelta(hours=1))
    scheduler.pause(job.id)
    fire = scheduler.job(job.id, as_of=stage.now()).next_run
    assert fire is None
    until = stage.now() + timedelta(seconds=0.3)
    while stage.now() < until:
        pass
    scheduler.resume(job.id, reason="the bank is back")
    scheduler.cancel(other.id, reason="no more mail")

    paused, cancelled = scheduler.skips()
    assert (paused.name, paused.cause, paused.because) == ("bill", "paused", "the job was paused")
    assert paused.count is not None
    assert paused.count >= 2
    assert (paused.actor, paused.reason) == ("ann", "the bank is back")
    assert paused.occurrence_id is None
    assert (cancelled.name, cancelled.cause, cancelled.count) == ("mail", "cancelled", 1)
    assert (cancelled.occurrence_id, cancelled.first) == (waiting.id, waiting.fire_time)
    assert cancelled.to_dict()["because"] == "it or its job was cancelled"

    assert scheduler.skips(limit=1) == [paused]
    assert scheduler.skips(after=paused.id) == [cancelled]
    assert scheduler.skips(owner="sales") == [paused]
    assert scheduler.skips(name="mail") == [cancelled]
    assert scheduler.skips(job_id=job.id) == [paused]
    assert scheduler.skips(cause="overlap") == []
    assert scheduler.skips(cause="cancelled") == [cancelled]
    tick = timedelta(microseconds=1)
    # A range counts wherever any fire time of it lies, its ends included.
    within = paused.first + (paused.last - paused.first) / 2
    for since, end in (
        (within, within + tick),
        (paused.last, paused.last + tick),
        (paused.first - tick, paused.first + tick),
        (None, within),
        (within, None),
    ):
        assert paused in scheduler.skips(since=since, until=end), (since, end)
    assert paused not in scheduler.skips(since=paused.last + tick)
    assert paused not in scheduler.skips(until=paused.first)
    assert scheduler.skips(since=cancelled.first, until=cancelled.first + tick) == [cancelled]


def test_statistics_count_by_job_name_and_time(scheduler: Scheduler, stage: Stage) -> None:
    bill = scheduler.register("bill", schedule=Every(0.1))
    mail = scheduler.register("mail", schedule=Every(0.1))
    for _ in range(4):
        stage.succeed(stage.attempt(stage.claim_due(bill.id)))
    stage.dead(mail.id)
    waiting = stage.fail(stage.attempt(stage.claim_due(mail.id)), retry_in_s=0.001)
    stage.succeed(stage.attempt(stage.claim(waiting.id)))
    stage.attempt(stage.claim_due(mail.id))  # unfinished: it counts for nothing yet

    by_name = {row.name: row for row in scheduler.statistics(by="name", bucket_s=86_400 * 300)}
    assert by_name["bill"].runs == by_name["bill"].succeeded == 4
    assert by_name["bill"].duration_s.p99 == 0.5
    late = by_name["bill"].late_s
    assert late.p50 is not None
    assert 0 < late.p50 < 5
    assert (by_name["mail"].runs, by_name["mail"].dead, by_name["mail"].failures) == (2, 1, 2)

    (whole,) = scheduler.statistics(by="all", bucket_s=86_400 * 300)
    assert (whole.runs, whole.group, whole.job_id) == (6, "", None)
    by_job = scheduler.statistics(bucket_s=1)
    assert sum(row.runs for row in by_job) == 6
    assert {row.job_id for row in by_job} == {bill.id, mail.id}
    paged = scheduler.statistics(bucket_s=1, limit=1)
    while page := scheduler.statistics(
        bucket_s=1, limit=1, after=(paged[-1].bucket, paged[-1].group)
    ):
        paged += page
    assert paged == by_job
    assert {r.name for r in scheduler.statistics(job_id=bill.id)} == {"bill"}
    assert scheduler.statistics(until=datetime(2020, 1, 1, tzinfo=UTC)) == []
    for wrong in (0.5, 1.5, 10**9):
        with pytest.raises(InvalidPolicy, match="whole seconds"):
            scheduler.statistics(bucket_s=wrong)


def test_quantiles_are_values_that_were_there() -> None:
    values = [float(n) for n in range(1, 101)]
    found = quantiles(reversed(values))
    assert (found.p50, found.p95, found.p99) == (50.0, 95.0, 99.0)
    assert quantiles([3.0]).p50 == quantiles([3.0]).p99 == 3.0
    assert quantiles([]).p50 is None


def test_a_choice_that_makes_no_sense_is_refused(scheduler: Scheduler) -> None:
    wrong = [
        {"state": "ended"},
        {"kind": "cron"},
        {"failure": "bad luck"},
        {"limit": 0},
        {"worker": "\0"},
    ]
    for choice in wrong:
        with pytest.raises(InvalidPolicy):
            scheduler.executions(**choice)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidPolicy, match="there are misfire"):
        scheduler.skips(cause="luck")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidSchedule, match="no zone"):
        scheduler.executions(since=datetime(2027, 1, 1))  # noqa: DTZ001 - what is refused


def test_a_simulation_answers_the_same_questions() -> None:
    worker = Worker()

    @worker.handles("bill")
    def bill(run: Run) -> None:  # pyright: ignore[reportUnusedFunction]
        if run.attempt == 1 and run.fire_time.hour == 3:
            raise ConnectionError("away")
        if run.fire_time.hour == 4:
            raise Permanent("no such card")

    with SimulatedScheduler(worker, takes={"bill": 2.0}) as scheduler:
        job = scheduler.register(
            "bill", schedule=Cron("0 * * * *", "UTC"), retry=Retry(base=60, jitter=0)
        )
        begin = scheduler.now
        scheduler.advance(hours=5, minutes=30)
        scheduler.pause(job.id)
        scheduler.advance(hours=3)
        scheduler.resume(job.id)

        states = [one.state for one in scheduler.executions()]
        assert states.count("dead") == 1
        assert states.count("succeeded") == len(states) - 1
        (retried,) = (one for one in scheduler.executions(failure="transport"))
        assert retried.fire_time.hour == 3
        assert retried.attempt == 2
        (range_,) = scheduler.skips(since=begin)
        assert (range_.cause, range_.count) == ("paused", 3)
        (row,) = scheduler.statistics(by="all", bucket_s=86_400)
        assert (row.dead, row.failures, row.duration_s.p50) == (1, 2, 2.0)
        last = scheduler.executions(by_end=True)[-1]
        assert scheduler.executions(by_end=True, after=last.id) == []
