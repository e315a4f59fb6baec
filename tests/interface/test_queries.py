"""What a client can ask: pages, filters, histories, and the bounds of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4

import pytest

from horolog import (
    Cron,
    Every,
    InvalidPolicy,
    InvalidSchedule,
    JobSpec,
    Once,
    Scheduler,
    UnknownJob,
    UnknownOccurrence,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.interface.conftest import Stage

    from horolog.infrastructure.postgres.database import Database


def test_jobs_are_listed_page_by_page_and_by_what_is_asked(scheduler: Scheduler) -> None:
    specs = [
        JobSpec(f"job-{n % 3}", schedule=Every(60), labels={"region": "us" if n % 2 else "eu"})
        for n in range(20)
    ]
    jobs = list(scheduler.register_many(specs))
    paused, cancelled = scheduler.pause(jobs[3].id), scheduler.cancel(jobs[4].id)

    seen: list[UUID] = []
    while page := scheduler.jobs(after=seen[-1] if seen else None, limit=7):
        assert len(page) <= 7
        seen += [job.id for job in page]
    assert seen == sorted(job.id for job in jobs)

    assert len(scheduler.jobs(status="active")) == 18
    assert scheduler.jobs(status="paused") == [paused]
    assert scheduler.jobs(status="cancelled") == [cancelled]
    assert scheduler.jobs(status="completed") == []
    assert {job.name for job in scheduler.jobs(name="job-1")} == {"job-1"}
    assert len(scheduler.jobs(name="job-1", status="active")) == 6
    for label in ("region=us", ("region", "us"), {"region": "us"}):
        assert len(scheduler.jobs(label=label)) == 10
    assert len(scheduler.jobs(label="region")) == 20
    assert scheduler.jobs(label="colour") == []


def test_occurrences_are_listed_by_fire_time_finished_or_not(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    other = scheduler.register("report", schedule=Every(60))
    done = [stage.succeed(stage.attempt(stage.claim_fire(job.id)), n).id for n in range(3)]
    claimed = stage.claim_fire(job.id)
    dead = stage.dead(job.id)
    elsewhere = stage.claim_fire(other.id)

    found = scheduler.occurrences(job_id=job.id)
    assert [o.id for o in found] == [*done, claimed.id, dead.id]
    assert [o.state for o in found] == ["succeeded"] * 3 + ["claimed", "dead"]
    assert [o.result for o in found[:3]] == [0, 1, 2]
    newest = scheduler.occurrences(job_id=job.id, newest_first=True, limit=2)
    assert [o.id for o in newest] == [dead.id, claimed.id]
    rest = scheduler.occurrences(job_id=job.id, newest_first=True, after=claimed.id)
    assert [o.id for o in rest] == done[::-1]

    seen: list[UUID] = []
    while page := scheduler.occurrences(after=seen[-1] if seen else None, limit=2):
        seen += [o.id for o in page]
    assert seen == sorted([*done, claimed.id, dead.id, elsewhere.id])

    assert {o.id for o in scheduler.occurrences(state="claimed")} == {claimed.id, elsewhere.id}
    assert [o.id for o in scheduler.occurrences(state="dead")] == [dead.id]
    since, until = found[1].fire_time, found[3].fire_time
    between = scheduler.occurrences(job_id=job.id, since=since, until=until)
    assert [o.id for o in between] == done[1:]


def test_an_occurrence_says_what_its_last_event_said(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("report", schedule=Every(60))
    running = stage.attempt(stage.claim_fire(job.id))
    found = scheduler.occurrence(running.id)
    assert (found.state, found.worker, found.attempt) == ("running", "worker-1", 1)
    assert found.due_at is not None
    assert found.finished_at is None

    stage.fail(running, retry_in_s=60)
    found = scheduler.occurrence(running.id)
    assert (found.state, found.error, found.failures) == ("retrying", "no such card", 1)

    assert found.to_dict()["state"] == "retrying"
    assert scheduler.occurrence(str(found.id)) == found


def test_a_history_is_the_events_of_a_job_an_occurrence_or_a_partition(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60), key="k", reason="asked for")
    ended = stage.succeed(stage.attempt(stage.claim_fire(job.id)))

    (registered,) = scheduler.history("k")
    assert registered == scheduler.history(job.id)[0]
    assert (registered.actor, registered.reason, registered.causation) == ("ann", "asked for", None)
    assert registered.data["definition"]["name"] == "report"

    events = scheduler.history(ended.id)
    assert [e.topic for e in events] == [
        "occurrence.claimed.1",
        "occurrence.attempted.1",
        "occurrence.succeeded.1",
    ]
    assert [e.version for e in scheduler.history(ended.id, after=1, limit=1)] == [2]
    assert events[1].causation == f"{ended.id}:1"
    assert events[1].correlation == ended.id
    (elected,) = scheduler.history(job.partition)
    assert elected.topic == "partition.elected.1"
    assert scheduler.history(uuid4()) == []
    with pytest.raises(UnknownJob, match="'no such key'"):
        scheduler.history("no such key")
    with pytest.raises(InvalidPolicy, match="partitions 0 to 63"):
        scheduler.history(64)


def test_the_log_is_every_event_in_one_order(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("report", schedule=Every(60))
    stage.succeed(stage.attempt(stage.claim_fire(job.id)))
    log = scheduler.log()
    positions = [event.position for event in log]
    assert positions == sorted(set(positions))
    assert len(log) == stage.events() == 5
    assert scheduler.log(after=positions[1], limit=2) == log[2:4]
    assert [e.topic for e in scheduler.log(topics="job")] == ["job.registered.1"]
    claimed = scheduler.log(topics=["occurrence.claimed", "occurrence.succeeded.1"])
    assert [e.version for e in claimed] == [1, 3]
    with pytest.raises(InvalidPolicy, match=r"topic 'occurrence\.exploded': no event has it"):
        scheduler.log(topics="occurrence.exploded")


def test_the_next_fire_times_of_a_job_end_where_its_schedule_does(
    scheduler: Scheduler, stage: Stage
) -> None:
    daily = scheduler.register("a", schedule=Cron("30 2 * * *", zone="America/New_York"))
    fires = scheduler.upcoming(daily.id, 3)
    assert [fire.local.strftime("%H:%M") for fire in fires] == ["02:30"] * 3
    assert fires[0].at == daily.next_run

    limited = scheduler.register("a", schedule=Every(60, limit=3))
    stage.claim_fire(limited.id)
    assert len(scheduler.upcoming(limited.id, 10)) == 2
    once = scheduler.register("a", schedule=Once(datetime(2100, 1, 1, tzinfo=UTC)))
    assert len(scheduler.upcoming(once.id)) == 1
    with pytest.raises(InvalidPolicy, match="n=0"):
        scheduler.upcoming(once.id, 0)


def test_what_a_query_cannot_answer_is_refused_with_what_would_be_right(
    scheduler: Scheduler,
) -> None:
    asked = cast("Any", scheduler)
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    refused: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (InvalidPolicy, "limit=0: give a number from 1 to 10000", lambda: asked.jobs(limit=0)),
        (InvalidPolicy, "limit=10001", lambda: asked.occurrences(limit=10_001)),
        (InvalidPolicy, "limit='a'", lambda: asked.log(limit="a")),
        (InvalidPolicy, "limit=True", lambda: asked.dead_letters(limit=True)),
        (InvalidPolicy, "status='gone': there are active", lambda: asked.jobs(status="gone")),
        (InvalidPolicy, "state='late'", lambda: asked.occurrences(state="late")),
        (InvalidPolicy, "choose by one label", lambda: asked.jobs(label={"a": "b", "c": "d"})),
        (InvalidSchedule, "since=.* has no zone", lambda: asked.occurrences(since=naive)),
        (InvalidPolicy, r"name='a\\x00' .* NUL", lambda: asked.jobs(name="a\x00")),
        (InvalidPolicy, "owner=.* lone surrogate", lambda: asked.dead_letters(owner="\ud800")),
        (InvalidPolicy, "after=-1", lambda: asked.log(after=-1)),
        (InvalidPolicy, "after=1180", lambda: asked.history(1, after=2**70)),
        (InvalidPolicy, "after='x'", lambda: next(asked.follow(after="x"))),
        (UnknownJob, "no such key", lambda: asked.job("no such key")),
        (UnknownJob, "a", lambda: asked.job("a\x00")),
        (UnknownOccurrence, "no occurrence", lambda: asked.occurrence(uuid4())),
        (UnknownOccurrence, "'x'", lambda: asked.occurrence("x")),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
    for zone in (timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))):
        for far in (datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)):
            assert scheduler.occurrences(since=far, until=far) == []


def test_a_view_answers_in_sql_who_changed_this_job_when_and_why(
    scheduler: Scheduler, database: Database
) -> None:
    job = scheduler.register("a", schedule=Every(60))
    scheduler.update(job.id, payload={"n": 2}, reason="a typo")
    rows = database.query(
        database.sql(
            "SELECT recorded_at, actor, reason, topic, state -> 'payload' ->> 'n'"
            " FROM :schema.log WHERE stream = %s ORDER BY version"
        ),
        (job.id,),
    )
    assert [row[1:] for row in rows] == [
        ("ann", None, "job.registered.1", None),
        ("ann", "a typo", "job.payload_changed.1", "2"),
    ]
    assert abs(rows[1][0] - datetime.now(UTC)) < timedelta(minutes=5)


def test_what_is_due_next_comes_by_due_time_over_all_partitions(
    scheduler: Scheduler, stage: Stage
) -> None:
    now = datetime.now(UTC)
    jobs = [
        scheduler.register("report", schedule=Once(now + timedelta(seconds=60 * (n % 5 + 1))))
        for n in range(12)
    ]
    paused = scheduler.register("report", schedule=Every(30))
    scheduler.pause(paused.id)
    run = scheduler.trigger(jobs[0].id)
    found = scheduler.due_next(now + timedelta(seconds=200))
    assert found[0].id == run.id, "what is overdue comes first"
    assert [entry.due_at for entry in found] == sorted(entry.due_at for entry in found)
    wanted = {
        job.id for job in jobs if job.next_run and job.next_run < now + timedelta(seconds=200)
    }
    assert {entry.id for entry in found[1:]} == wanted
    assert {(entry.kind, entry.state) for entry in found[1:]} == {("job", "active")}
    assert scheduler.due_next(now + timedelta(seconds=200), limit=3) == found[:3]
    stage.attempt(stage.claim(run.id))
    assert run.id not in {entry.id for entry in scheduler.due_next(now + timedelta(hours=1))}


def test_one_connection_acts_for_many_people(scheduler: Scheduler) -> None:
    bob = scheduler.acting_as("bob")
    job = bob.register("report", schedule=Every(60))
    bob.close()
    scheduler.pause(job.id)
    assert [change.actor for change in scheduler.changes(job.id)] == ["bob", "ann"]
