"""``horolog verify``: nothing to say about an honest log, and every planted violation is found."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from horolog import Every, JobSpec, Once, Retry, Scheduler
from horolog.application.verify import Report, verify
from horolog.application.verify.share import Share, merged
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

if TYPE_CHECKING:
    from tests.interface.conftest import Stage

    from horolog.domain.occurrence import OccurrenceState
    from horolog.infrastructure.postgres.database import Database


@dataclass
class Forger:
    """Writes past every check, as nobody should."""

    database: Database

    def do(self, statement: str, *params: object) -> None:
        self.database.query(self.database.sql(statement), params)

    def event(
        self,
        stream: UUID,
        version: int,
        topic: str,
        *,
        position: int | None = None,
        **state: Any,
    ) -> None:
        table = "occurrence_events" if topic.startswith("occurrence") else "job_events"
        self.do(
            f"INSERT INTO :schema.{table} (position, recorded_at, stream, version, topic, state)"
            " VALUES (coalesce(%s, nextval(:positions)), clock_timestamp(), %s, %s, %s, %s)",
            position,
            stream,
            version,
            topic,
            json.dumps(state, default=str, separators=(",", ":")).encode(),
        )

    def check(self) -> Report:
        return verify(PostgresLogScan(self.database), page=7)

    def check_in_shares(self) -> Report:
        shares = [Share(number, 3) for number in range(3)]
        return merged(
            [
                verify(PostgresLogScan(self.database, share), page=7, share=share, stretch=5)
                for share in shares
            ]
        )

    def finds(self, invariant: int, message: str, stream: UUID, version: int) -> None:
        """The check names this violation, with the event that was planted."""
        report = self.check()
        shared = self.check_in_shares()
        assert set(shared.violations) == set(report.violations)
        assert shared.to_dict() | {"violations": []} == report.to_dict() | {"violations": []}
        named = {
            (e.stream, e.version)
            for violation in report.violations
            if violation.invariant == invariant and message in violation.message
            for e in violation.evidence
        }
        assert (stream, version) in named, [str(v) for v in report.violations]
        assert not report.ok
        assert report.to_dict()["violation_count"] == report.violation_count >= 1


@pytest.fixture
def forger(database: Database) -> Forger:
    return Forger(database)


@pytest.fixture
def running(scheduler: Scheduler, stage: Stage) -> OccurrenceState:
    """An occurrence whose only attempt runs."""
    return stage.attempt(stage.claim_fire(scheduler.register("report", schedule=Every(60)).id))


def played(scheduler: Scheduler, stage: Stage) -> dict[str, UUID]:
    """A log with a little of everything, all of it honest."""
    job = scheduler.register("report", schedule=Every(60), retry=Retry(max_attempts=3))
    done = stage.succeed(stage.attempt(stage.claim_fire(job.id)))
    retrying = stage.fail(stage.attempt(stage.claim_fire(job.id)), retry_in_s=0)
    again = stage.succeed(stage.attempt(stage.claim(retrying.id)))
    dead = stage.dead(job.id)
    replayed = stage.dead(job.id)
    scheduler.replay(replayed.id)
    stage.succeed(stage.attempt(stage.claim(replayed.id)))
    discarded = stage.dead(job.id)
    scheduler.discard(discarded.id)
    recalled = stage.claim_fire(job.id)
    scheduler.update(job.id, payload={"n": 1})
    running = stage.attempt(stage.claim_fire(job.id))
    ordered = scheduler.trigger(job.id)
    paused = scheduler.pause(scheduler.register("report", schedule=Every(60)).id)
    cancelled = scheduler.register("report", schedule=Every(60))
    scheduler.trigger(cancelled.id)
    scheduler.cancel(cancelled.id)
    anchor = stage.now() - timedelta(seconds=30)
    backfilled = scheduler.register("report", schedule=Every(60, anchor=anchor))
    scheduler.backfill(backfilled.id, stage.now() - timedelta(hours=1), stage.now())
    revived = scheduler.register("report", schedule=Once(stage.now() + timedelta(hours=1)))
    scheduler.pause(revived.id)
    scheduler.reschedule(revived.id, Every(60))
    scheduler.resume(revived.id)
    return {
        "job": job.id,
        "done": done.id,
        "again": again.id,
        "dead": dead.id,
        "recalled": recalled.id,
        "running": running.id,
        "ordered": ordered.id,
        "paused": paused.id,
    }


def test_an_honest_log_has_no_violation_and_is_counted(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    assert forger.check().ok
    played(scheduler, stage)
    report = forger.check()
    assert [str(v) for v in report.violations] == []
    assert report.events == stage.events()
    assert report.position == scheduler.log(limit=10_000)[-1].position
    assert (report.jobs, report.occurrences, report.attempts) == (5, 10, 8)
    assert (report.succeeded, report.dead, report.dead_lettered) == (3, 1, 3)
    assert (report.retried, report.replayed, report.discarded) == (1, 1, 1)
    assert (report.skipped, report.unfinished) == (1, 4)


def test_a_system_that_runs_beside_the_check_is_no_violation(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    stage.lead(job.partition)
    with ThreadPoolExecutor(1) as thread:
        checks = thread.submit(
            lambda: [forger.check() if n % 2 else forger.check_in_shares() for n in range(8)]
        )
        while not checks.done():
            stage.succeed(stage.attempt(stage.claim_fire(job.id)))
            scheduler.trigger(job.id)
            scheduler.register("other", schedule=Every(60))
        for report in checks.result():
            assert [str(v) for v in report.violations] == []
    assert forger.check().succeeded > 0


def test_shares_of_the_check_count_everything_once(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    played(scheduler, stage)
    assert forger.check_in_shares() == forger.check()
    assert forger.check().ok


def test_processes_check_a_log_together_and_say_how_far_they_are(
    scheduler: Scheduler, stage: Stage, forger: Forger, running: OccurrenceState
) -> None:
    forger.event(running.id, 4, "occurrence.succeeded.1", attempt=1)
    reached: list[int] = []
    settings = Settings.read(
        forger.database.url, namespace=forger.database.namespace, environment={}
    )
    report = verify_log(settings, shares=2, progress=reached.append)
    assert set(report.violations) == set(forger.check().violations)
    assert reached[-1] > 0


def test_memory_holds_what_is_unfinished_and_not_the_whole_log(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    for _ in range(20):
        stage.succeed(stage.attempt(stage.claim_fire(job.id)))
    stage.claim_fire(job.id)
    report = forger.check()
    assert (report.succeeded, report.unfinished) == (20, 1)


# Invariant 1


def test_a_missing_version_is_found(forger: Forger, running: OccurrenceState) -> None:
    forger.event(running.id, 4, "occurrence.succeeded.1", attempt=1)
    forger.finds(1, "version 4 follows version 2", running.id, 4)


def test_a_stream_without_its_beginning_is_found(forger: Forger) -> None:
    stream = occurrence_id(uuid4(), datetime.fromisoformat("2026-11-30T00:00:00Z"))
    forger.event(stream, 3, "occurrence.attempted.1", attempt=1, lease=30)
    forger.finds(1, "version 3 follows version 0", stream, 3)


def test_a_missing_version_of_a_job_is_found(scheduler: Scheduler, forger: Forger) -> None:
    job = scheduler.register("report", schedule=Every(60))
    forger.event(job.id, 3, "job.payload_changed.1", payload={})
    forger.finds(1, "has 2 events and is at version 3", job.id, 3)


def test_a_position_that_is_taken_twice_is_found(
    scheduler: Scheduler, forger: Forger, running: OccurrenceState
) -> None:
    last = scheduler.log()[-1].position
    forger.event(running.id, 3, "occurrence.succeeded.1", attempt=1, position=last)
    report = forger.check()
    assert any(
        v.invariant == 1 and f"position {last} is taken twice" in v.message
        for v in report.violations
    )


def test_an_event_that_cannot_be_read_is_named(forger: Forger, running: OccurrenceState) -> None:
    forger.event(running.id, 3, "occurrence.exploded.9", attempt=1)
    forger.do(
        "INSERT INTO :schema.occurrence_events VALUES"
        " (nextval(:positions), now(), %s, 4, 'occurrence.failed.1', %s)",
        running.id,
        b'{"attempt": 1, "ki',
    )
    forger.finds(1, "occurrence.exploded.9 cannot be read", running.id, 3)
    forger.finds(1, "occurrence.failed.1 cannot be read", running.id, 4)


# Invariant 2


def test_a_second_success_is_found(stage: Stage, forger: Forger, running: OccurrenceState) -> None:
    stage.succeed(running)
    forger.event(running.id, 4, "occurrence.succeeded.1", attempt=1)
    forger.finds(2, "occurrence.succeeded.1 follows Succeeded", running.id, 4)


def test_anything_after_a_success_is_found_however_late_it_comes(
    scheduler: Scheduler, stage: Stage, forger: Forger, running: OccurrenceState
) -> None:
    stage.succeed(running)
    list(scheduler.register_many([JobSpec("report", schedule=Every(60))] * 20))
    forger.event(running.id, 4, "occurrence.lost.1", attempt=1)
    forger.finds(2, "occurrence.lost.1 follows Succeeded", running.id, 4)


# Invariant 3


def test_an_attempt_without_its_claim_is_found(forger: Forger, running: OccurrenceState) -> None:
    forger.event(running.id, 3, "occurrence.attempted.1", attempt=1, lease=30)
    forger.finds(3, "occurrence.attempted.1 comes in the state running", running.id, 3)


def test_an_attempt_of_another_number_than_the_claims_is_found(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    claimed = stage.claim_fire(scheduler.register("report", schedule=Every(60)).id)
    forger.event(claimed.id, 2, "occurrence.attempted.1", attempt=2, lease=30)
    forger.finds(3, "of attempt 2, where 1 is claimed", claimed.id, 2)


def test_an_outcome_without_its_attempt_is_found(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    claimed = stage.claim_fire(scheduler.register("report", schedule=Every(60)).id)
    forger.event(claimed.id, 2, "occurrence.failed.1", attempt=1, kind="unknown", error="x")
    forger.finds(3, "occurrence.failed.1 comes in the state claimed", claimed.id, 2)


def test_an_outcome_of_another_attempt_is_found(forger: Forger, running: OccurrenceState) -> None:
    forger.event(running.id, 3, "occurrence.succeeded.1", attempt=2)
    forger.finds(3, "of attempt 2, where 1 is claimed", running.id, 3)


def test_a_claim_that_leaves_out_or_repeats_an_attempt_is_found(
    stage: Stage, forger: Forger, running: OccurrenceState
) -> None:
    stage.fail(running, retry_in_s=0)
    claim = _claim_of(running, stage, attempt=4)
    forger.event(running.id, 4, "occurrence.claimed.1", **claim)
    forger.finds(3, "attempt 4 is claimed after 1", running.id, 4)


def test_a_run_of_what_was_skipped_is_found(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    claimed = stage.claim_fire(job.id)
    scheduler.cancel(job.id)
    forger.event(claimed.id, 3, "occurrence.attempted.1", attempt=1, lease=30)
    forger.finds(3, "comes in the state skipped", claimed.id, 3)


# Invariant 4


def test_a_claim_under_an_old_token_is_found(
    stage: Stage, forger: Forger, database: Database, running: OccurrenceState
) -> None:
    stream = partition_stream(database.namespace, running.partition)
    forger.event(
        stream, 2, "partition.elected.1", partition=running.partition, instance="b", lease=5
    )
    other = occurrence_id(running.job_id, running.fire_time, "trigger", "x")
    forger.event(other, 1, "occurrence.claimed.1", **_claim_of(running, stage))
    forger.finds(4, "token 2 was elected before", other, 1)


def test_a_claim_after_the_leader_left_is_found(
    stage: Stage, forger: Forger, database: Database, running: OccurrenceState
) -> None:
    stream = partition_stream(database.namespace, running.partition)
    forger.event(stream, 2, "partition.released.1", partition=running.partition, instance="stage")
    other = occurrence_id(running.job_id, running.fire_time, "trigger", "x")
    forger.event(other, 1, "occurrence.claimed.1", **_claim_of(running, stage))
    forger.finds(4, "its leader had released it", other, 1)


def test_a_claim_in_a_partition_without_a_leader_is_found(
    stage: Stage, forger: Forger, running: OccurrenceState
) -> None:
    other = occurrence_id(running.job_id, running.fire_time, "trigger", "x")
    claim = _claim_of(running, stage) | {"partition": (running.partition + 1) % 64}
    forger.event(other, 1, "occurrence.claimed.1", **claim)
    forger.finds(4, "never had a leader", other, 1)


def test_a_token_that_does_not_grow_is_found(
    forger: Forger, database: Database, running: OccurrenceState
) -> None:
    stream = partition_stream(database.namespace, running.partition)
    for version in (3, 2):
        forger.event(
            stream,
            version,
            "partition.elected.1",
            partition=running.partition,
            instance="b",
            lease=5,
        )
    forger.finds(4, "is not newer than 3", stream, 2)


# Invariant 5 (in simulated time: test_verifying_fire_times.py)


@pytest.mark.parametrize("spelled", ["{}", "{{{}}}", "urn:uuid:{}"])
def test_a_claim_of_what_was_not_announced_is_found_however_it_names_its_job(
    scheduler: Scheduler, stage: Stage, forger: Forger, spelled: str
) -> None:
    for job in scheduler.register_many([JobSpec("report", schedule=Every(60))] * 4):
        fired = stage.claim_fire(job.id)
        odd = fired.fire_time - timedelta(seconds=1)
        claim = _claim_of(fired, stage)
        claim |= {"job_id": spelled.format(job.id), "fire_time": odd.isoformat()}
        claim |= {"fires": 2, "next_fire": odd.isoformat()}
        forged = occurrence_id(job.id, odd)
        forger.event(forged, 1, "occurrence.claimed.1", **claim)
        forger.finds(5, "had its turn before", forged, 1)


# Invariant 6


def test_a_job_that_is_missing_in_the_index_is_found(scheduler: Scheduler, forger: Forger) -> None:
    job = scheduler.register("report", schedule=Every(60))
    forger.do("DELETE FROM :schema.next_runs WHERE id = %s", job.id)
    forger.finds(6, "is active and not in the index", job.id, 1)


def test_a_row_of_a_job_that_does_not_fire_is_found(scheduler: Scheduler, forger: Forger) -> None:
    job = scheduler.register("report", schedule=Every(60))
    forger.event(job.id, 2, "job.cancelled.1")
    forger.finds(6, "is in the index and not active", job.id, 1)


def test_a_row_of_a_job_that_never_was_is_found(scheduler: Scheduler, forger: Forger) -> None:
    job = scheduler.register("report", schedule=Every(60))
    stranger = uuid4()
    forger.do("UPDATE :schema.next_runs SET id = %s WHERE id = %s", stranger, job.id)
    forger.finds(6, "is in the index and not active", stranger, 1)
    forger.finds(6, "is active and not in the index", job.id, 1)


def test_a_row_of_a_job_at_another_version_is_found(scheduler: Scheduler, forger: Forger) -> None:
    job = scheduler.register("report", schedule=Every(60))
    forger.do("UPDATE :schema.next_runs SET version = 7 WHERE id = %s", job.id)
    forger.finds(6, "in the index at version 7, and in the log at 1", job.id, 1)


def test_a_row_that_would_fire_again_what_was_fired_is_found(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    fired = stage.claim_fire(job.id)
    forger.do("UPDATE :schema.next_runs SET fire_time = %s WHERE id = %s", fired.fire_time, job.id)
    forger.finds(6, "which was fired", fired.id, 1)


def test_an_occurrence_that_is_missing_in_the_index_is_found(
    forger: Forger, running: OccurrenceState
) -> None:
    forger.do("DELETE FROM :schema.next_runs WHERE id = %s", running.id)
    forger.finds(6, "is running and not in the index", running.id, 2)


def test_an_order_that_is_missing_in_the_index_is_found(
    scheduler: Scheduler, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    ordered = scheduler.trigger(job.id)
    forger.do("DELETE FROM :schema.next_runs WHERE id = %s", ordered.id)
    forger.finds(6, "is scheduled and not in the index", ordered.id, 0)


def test_a_row_of_an_occurrence_that_has_ended_is_found(
    forger: Forger, running: OccurrenceState
) -> None:
    forger.event(running.id, 3, "occurrence.succeeded.1", attempt=1)
    forger.finds(6, "by the log it is not unfinished", running.id, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("version = 9", "with version 9, and in the log with 2"),
        ("state = 'claimed'", "with state claimed, and in the log with running"),
        ("attempt = 5", "with attempt 5, and in the log with 1"),
        ("job_id = gen_random_uuid()", "with job"),
    ],
)
def test_a_row_of_an_occurrence_that_says_something_else_is_found(
    forger: Forger, running: OccurrenceState, change: str, message: str
) -> None:
    forger.do(f"UPDATE :schema.next_runs SET {change} WHERE id = %s", running.id)
    forger.finds(6, message, running.id, 2)


def test_a_row_that_is_due_before_its_retry_is_found(
    stage: Stage, forger: Forger, running: OccurrenceState
) -> None:
    stage.fail(running, retry_in_s=3600)
    forger.do("UPDATE :schema.next_runs SET due_at = now() WHERE id = %s", running.id)
    forger.finds(6, "is due in the index at", running.id, 3)


# Invariant 7


def test_a_retry_before_its_time_is_found(
    stage: Stage, forger: Forger, running: OccurrenceState
) -> None:
    stage.fail(running, retry_in_s=3600)
    forger.event(running.id, 4, "occurrence.claimed.1", **_claim_of(running, stage, attempt=2))
    forger.finds(7, "claimed at", running.id, 4)


def test_more_attempts_than_the_policy_allows_are_found(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60), retry=Retry(max_attempts=2))
    first = stage.fail(stage.attempt(stage.claim_fire(job.id)), retry_in_s=0)
    assert forger.check().ok
    second = stage.fail(stage.attempt(stage.claim(first.id)), retry_in_s=0)
    forger.finds(7, f"3 attempts where job {job.id} allows 2", second.id, second.version)


def test_a_policy_that_was_more_generous_once_is_no_violation(
    scheduler: Scheduler, stage: Stage, forger: Forger
) -> None:
    job = scheduler.register("report", schedule=Every(60), retry=Retry(max_attempts=2))
    scheduler.update(job.id, retry=Retry(max_attempts=3))
    first = stage.fail(stage.attempt(stage.claim_fire(job.id)), retry_in_s=0)
    stage.fail(stage.attempt(stage.claim(first.id)), retry_in_s=0)
    scheduler.update(job.id, retry=Retry(max_attempts=2))
    assert [str(v) for v in forger.check().violations] == []


def _claim_of(occurrence: OccurrenceState, stage: Stage, attempt: int = 1) -> dict[str, Any]:
    return {
        "job_id": occurrence.job_id,
        "job_version": 1,
        "fire_time": occurrence.fire_time.isoformat(),
        "attempt": attempt,
        "partition": occurrence.partition,
        "token": stage.tokens[occurrence.partition],
        "window": 30.0,
    }
