"""Rescheduling, updating, pausing, resuming and cancelling, also against claims in flight."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from horolog import (
    Cron,
    Every,
    InvalidPayload,
    InvalidPolicy,
    InvalidSchedule,
    NotAllowed,
    Once,
    Retry,
    Scheduler,
    UnknownJob,
    UnknownOccurrence,
    VersionConflict,
)

if TYPE_CHECKING:
    from tests.interface.conftest import Stage


def test_a_rescheduled_job_fires_by_the_new_schedule_alone(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    at = stage.now() + timedelta(hours=5)
    changed = scheduler.reschedule(job.id, Once(at), reason="moved")
    assert (changed.next_run, changed.version) == (at, 2)
    assert scheduler.reschedule(job.id, Once(at)) == changed
    assert [fire.at for fire in scheduler.upcoming(job.id, 5)] == [at]
    (event,) = scheduler.history(job.id, after=1)
    assert (event.topic, event.reason, event.actor) == ("job.rescheduled.1", "moved", "ann")
    with pytest.raises(InvalidSchedule, match="no fire time"):
        scheduler.reschedule(job.id, Once(stage.now() - timedelta(days=1)))
    assert scheduler.job(job.id) == changed


def test_an_update_changes_what_is_given_and_nothing_else(scheduler: Scheduler) -> None:
    job = scheduler.register("a", schedule=Every(60), payload={"n": 1}, timeout=5.0, owner="x")
    changed = scheduler.update(job.id, payload={"n": 2}, timeout=None, retry=Retry(max_attempts=2))
    assert (changed.payload, changed.timeout, changed.retry.max_attempts) == ({"n": 2}, None, 2)
    assert (changed.owner, changed.next_run) == ("x", job.next_run)
    assert scheduler.job(job.id) == changed
    assert scheduler.update(job.id, payload={"n": 2}, timeout=None) == changed
    for policies, message in (
        ({"priority": 101}, "priority=101"),
        ({"colour": "red"}, "colour"),
        ({"labels": {"a": 1}}, "labels"),
        ({"concurrency_key": "c"}, "fixed at registration"),
    ):
        with pytest.raises(InvalidPolicy, match=message):
            scheduler.update(job.id, **policies)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidPayload, match=r"payload\.n"):
        scheduler.update(job.id, payload={"n": object()})
    assert scheduler.job(job.id) == changed


def test_an_update_makes_a_claim_anew_whose_run_has_not_begun(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60), payload={"n": 1})
    claimed, running = stage.claim_fire(job.id), stage.attempt(stage.claim_fire(job.id))

    scheduler.update(job.id, payload={"n": 2})

    topics = [event.topic for event in scheduler.history(claimed.id)]
    assert topics == ["occurrence.claimed.1", "occurrence.recalled.1"]
    assert scheduler.occurrence(claimed.id).state == "scheduled"
    assert scheduler.occurrence(running.id).state == "running"
    again = stage.claim(claimed.id)
    assert stage.succeed(stage.attempt(again)).state == "succeeded"


def test_a_paused_job_has_no_next_run_and_resuming_accounts_for_the_pause(
    scheduler: Scheduler,
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    paused = scheduler.pause(job.id, reason="holiday")
    assert (paused.status, paused.next_run) == ("paused", None)
    assert scheduler.pause(job.id) == paused
    assert scheduler.upcoming(job.id, 3) == []
    assert scheduler.job(job.id) == paused
    resumed = scheduler.resume(job.id)
    assert (resumed.status, resumed.next_run) == ("active", job.next_run)
    assert scheduler.resume(job.id) == resumed


def test_a_cancelled_job_runs_nothing_that_had_not_begun(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    claimed = stage.claim_fire(job.id)
    running = stage.attempt(stage.claim_fire(job.id))
    retrying = stage.fail(stage.attempt(stage.claim_fire(job.id)), retry_in_s=60)
    ordered = scheduler.trigger(job.id)

    cancelled = scheduler.cancel(job.id, reason="gone")

    assert (cancelled.status, cancelled.next_run) == ("cancelled", None)
    states = {o.id: (o.state, o.reason) for o in scheduler.occurrences(job_id=job.id)}
    assert states == {
        claimed.id: ("skipped", "cancelled"),
        running.id: ("stopping", "gone"),
        retrying.id: ("skipped", "cancelled"),
        ordered.id: ("skipped", "cancelled"),
    }
    correlations = {e.correlation for e in scheduler.log() if e.reason == "gone"}
    assert len(correlations) == 1
    assert scheduler.cancel(job.id) == cancelled
    running = replace(running, version=running.version + 1, state="stopping")
    assert stage.succeed(running).state == "succeeded"


def test_one_run_is_cancelled_and_its_job_goes_on(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("a", schedule=Every(60))
    claimed, running = stage.claim_fire(job.id), stage.attempt(stage.claim_fire(job.id))
    assert scheduler.cancel_occurrence(claimed.id, reason="hung").state == "skipped"
    assert scheduler.cancel_occurrence(running.id, reason="hung").state == "stopping"
    assert scheduler.cancel_occurrence(str(running.id)).state == "stopping"
    assert [o.id for o in scheduler.occurrences(state="stopping")] == [running.id]
    (event,) = scheduler.log(topics="occurrence.cancel_requested.1")
    assert (event.stream, event.reason, event.actor) == (running.id, "hung", "ann")
    assert scheduler.job(job.id).status == "active"
    ended = stage.succeed(stage.attempt(stage.claim_fire(job.id)))
    with pytest.raises(NotAllowed, match="it is succeeded already"):
        scheduler.cancel_occurrence(ended.id)
    with pytest.raises(UnknownOccurrence):
        scheduler.cancel_occurrence(uuid4())


def test_a_cancellation_reaches_more_occurrences_than_one_append_takes(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    start = stage.now() - timedelta(days=1)
    scheduler.reschedule(job.id, Every(60, anchor=start))
    assert scheduler.backfill(job.id, start, stage.now(), definition="current") > 1300
    scheduler.cancel(job.id)
    assert scheduler.occurrences(job_id=job.id, state="scheduled") == []
    assert len(scheduler.occurrences(job_id=job.id, state="skipped", limit=10_000)) > 1300


def test_commands_on_a_cancelled_job_say_why_not(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.cancel(scheduler.register("a", schedule=Every(60)).id)
    before = stage.events()
    for command in (
        lambda: scheduler.pause(job.id),
        lambda: scheduler.resume(job.id),
        lambda: scheduler.reschedule(job.id, Every(5)),
        lambda: scheduler.update(job.id, priority=1),
        lambda: scheduler.trigger(job.id),
        lambda: scheduler.backfill(job.id, stage.now() - timedelta(hours=1), stage.now()),
    ):
        with pytest.raises(NotAllowed, match=f"job {job.id}: it is cancelled"):
            command()
    assert stage.events() == before


def test_commands_on_a_job_that_does_not_exist_name_it(scheduler: Scheduler, stage: Stage) -> None:
    for unknown in (uuid4(), "no such key"):
        for command in (
            scheduler.pause,
            scheduler.resume,
            scheduler.cancel,
            scheduler.trigger,
            scheduler.job,
            scheduler.upcoming,
        ):
            with pytest.raises(UnknownJob, match=str(unknown)):
                command(unknown)
    assert stage.events() == 0


def test_a_command_on_a_version_that_has_passed_changes_nothing(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    scheduler.update(job.id, priority=1, expected_version=1)
    before = stage.events()
    for command in (
        lambda: scheduler.pause(job.id, expected_version=1),
        lambda: scheduler.cancel(job.id, expected_version=1),
        lambda: scheduler.reschedule(job.id, Every(5), expected_version=3),
        lambda: scheduler.update(job.id, priority=2, expected_version=1),
    ):
        with pytest.raises(VersionConflict) as conflict:
            command()
        assert conflict.value.current == 2
    assert stage.events() == before


def test_changes_at_once_are_all_made_one_after_the_other(scheduler: Scheduler) -> None:
    job = scheduler.register("a", schedule=Cron("0 0 1 1 *", zone="UTC"))
    with ThreadPoolExecutor(8) as threads:
        changes = [threads.submit(scheduler.update, job.id, labels={str(n): "x"}) for n in range(8)]
        versions = sorted(change.result().version for change in changes)
    assert versions == list(range(2, 10))
    assert scheduler.job(job.id).version == 9


def test_a_change_meets_claims_and_does_not_move_the_job_back(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    rounds, both_start = 40, Barrier(2)

    def change() -> None:
        for number in range(rounds):
            both_start.wait()
            scheduler.pause(job.id) if number % 2 else scheduler.resume(job.id)
            scheduler.trigger(job.id)

    claimed = 0
    with ThreadPoolExecutor(1) as thread:
        changing = thread.submit(change)
        for _ in range(rounds):
            both_start.wait()
            try:
                stage.claim_fire(job.id)
                claimed += 1
            except (AssertionError, ValueError):  # it was changed or paused meanwhile
                continue
        changing.result()
    after = scheduler.job(job.id)
    assert after.fires == claimed
    assert job.next_run is not None
    assert scheduler.resume(job.id).next_run == job.next_run + timedelta(seconds=60) * claimed
