"""Invariant 5: every fire time ran or is accounted for, and nothing ran that was none.

Honest logs are made by the scheduler in simulated time; then an event is changed, left out or put
in, as no release should ever do, and the check must name it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from horolog import Calendar, Cron, Every, Once, Scheduler
from horolog.application.verify import verify
from horolog.domain.ids import log_stream, occurrence_id
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.infrastructure.simulated.tables import StoredEvent, Tables
from horolog.testing import SimulatedScheduler

if TYPE_CHECKING:
    from tests.interface.conftest import Stage

    from horolog.infrastructure.postgres.database import Database

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAILY = Cron("30 2 * * *", "America/New_York")


class Forged:
    """A simulated log in which events can be changed after the fact."""

    def __init__(self, scheduler: SimulatedScheduler) -> None:
        self.scheduler = scheduler
        self.tables: Tables = scheduler._memory.tables  # pyright: ignore[reportPrivateUsage]

    def find(self, topic: str, number: int = 0) -> StoredEvent:
        return [event for event in self.tables.events if event.topic == topic][number]

    def change(self, event: StoredEvent, **changes: Any) -> None:
        state = json.loads(event.state) | changes
        kept = {name: value for name, value in state.items() if value is not None}
        self._put(event, replace(event, state=json.dumps(kept, default=_text).encode()))

    def forget(self, stream: UUID) -> None:
        """As if the occurrence had never been."""
        self.tables.events[:] = [e for e in self.tables.events if e.stream != stream]
        del self.tables.streams[stream]
        self.tables.executions.pop(stream, None)

    def add(self, stream: UUID, version: int, topic: str, **state: Any) -> None:
        text = json.dumps(state, default=_text).encode()
        self.tables.record(self.scheduler.now, stream, version, topic, text)

    def _put(self, before: StoredEvent, after: StoredEvent) -> None:
        for events in (self.tables.events, self.tables.streams[before.stream]):
            events[events.index(before)] = after

    def said(self) -> list[str]:
        return [str(v) for v in self.scheduler.verify().violations if v.invariant == 5]


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


Plays = Callable[..., Forged]


@pytest.fixture
def play() -> Plays:
    """A minutely job that has run five times, and a check that there is nothing to say yet."""

    def played(schedule: Any = None, **policies: Any) -> Forged:
        scheduler = SimulatedScheduler(start=START)
        scheduler.register("report", schedule=schedule or Every(60), key="k", **policies)
        scheduler.advance(minutes=5)
        forged = Forged(scheduler)
        assert forged.said() == []
        return forged

    return played


def job_of(forged: Forged) -> UUID:
    return forged.scheduler.job("k").id


def test_a_fire_time_that_is_missing_is_found(play: Plays) -> None:
    forged = play()
    job = job_of(forged)
    forged.forget(occurrence_id(job, START + 3 * MINUTE))
    (said,) = forged.said()
    assert f"{(START + 3 * MINUTE).isoformat()} of job {job} has no occurrence" in said
    assert str(occurrence_id(job, START + 4 * MINUTE)) in said


def test_fire_times_that_are_missing_at_the_end_are_seen_in_the_index(play: Plays) -> None:
    forged = play()
    forged.forget(occurrence_id(job_of(forged), START + 5 * MINUTE))
    assert forged.said() == [], "the last fire time that the log knows was the fourth"


def test_a_fire_time_that_the_schedule_does_not_have_is_found(play: Plays) -> None:
    forged = play()
    job = job_of(forged)
    odd = START + 5.5 * MINUTE
    last = forged.find("occurrence.claimed.1", 4)
    forged.change(last, next_fire=odd)
    claim = json.loads(last.state) | {"fire_time": odd, "fires": 6, "next_fire": START + 7 * MINUTE}
    forged.add(occurrence_id(job, odd), 1, "occurrence.claimed.1", **claim)
    said = forged.said()
    assert any(f"announces {odd.isoformat()}" in line for line in said), said


def test_a_claim_of_what_was_not_announced_is_found(play: Plays) -> None:
    forged = play()
    job = job_of(forged)
    again = START + 2 * MINUTE + timedelta(seconds=1)
    claim = json.loads(forged.find("occurrence.claimed.1", 1).state) | {"fire_time": again}
    forged.add(occurrence_id(job, again), 1, "occurrence.claimed.1", **claim)
    (said,) = forged.said()
    assert f"{again.isoformat()} of job {job} had its turn before" in said


def test_a_dropped_range_that_overlaps_a_claim_is_found(play: Plays) -> None:
    forged = play()
    job = job_of(forged)
    forged.add(
        job,
        2,
        "job.fires_skipped.1",
        first=START + 4 * MINUTE,
        last=START + 6 * MINUTE,
        count=3,
        cause="misfire",
        next_fire=START + 7 * MINUTE,
        fires=7,
    )
    said = forged.said()
    assert any("had its turn before" in line and f"{job}:2" in line for line in said), said


def test_a_dropped_range_that_reaches_too_far_is_found(play: Plays) -> None:
    forged = play()
    forged.scheduler.outage(minutes=30)
    forged.scheduler.run_due()
    assert forged.said() == []
    dropped = forged.find("job.fires_skipped.1")
    forged.change(dropped, last=START + 36 * MINUTE, count=31, fires=36)
    said = forged.said()
    assert any("announces" in line for line in said), said


def test_a_dropped_range_that_counts_wrongly_is_found(play: Plays) -> None:
    forged = play()
    forged.scheduler.outage(minutes=30)
    forged.scheduler.run_due()
    forged.change(forged.find("job.fires_skipped.1"), count=28)
    said = forged.said()
    assert any("drops 28 fire times" in line and "has 29 in" in line for line in said), said


def test_an_announcement_that_passes_over_a_fire_time_is_found(play: Plays) -> None:
    forged = play()
    claim = forged.find("occurrence.claimed.1", 4)
    forged.change(claim, next_fire=START + 7 * MINUTE)
    (said,) = forged.said()
    right = (START + 6 * MINUTE).isoformat()
    assert f"announces {(START + 7 * MINUTE).isoformat()}" in said
    assert f"has {right} after" in said


def test_a_beginning_that_passes_over_a_fire_time_is_found(play: Plays) -> None:
    forged = play(DAILY)
    forged.change(
        forged.find("job.registered.1"), next_fire=datetime(2027, 3, 3, 7, 30, tzinfo=UTC)
    )
    (said,) = forged.said()
    assert "begins with 2027-03-03T07:30:00+00:00 and not with 2027-03-02T07:30:00+00:00" in said


def test_a_completion_with_fire_times_left_is_found(play: Plays) -> None:
    forged = play()
    forged.add(job_of(forged), 2, "job.completed.1")
    (said,) = forged.said()
    assert f"is completed, and {(START + 6 * MINUTE).isoformat()} is left" in said


def test_more_runs_than_the_limit_are_found(play: Plays) -> None:
    forged = play(Every(60, limit=5))
    assert forged.scheduler.job("k").status == "completed"
    late = START + 6 * MINUTE
    claim = json.loads(forged.find("occurrence.claimed.1", 4).state)
    claim |= {"fire_time": late, "fires": 6}
    forged.add(occurrence_id(job_of(forged), late), 1, "occurrence.claimed.1", **claim)
    (said,) = forged.said()
    assert "which has no fire time left" in said


def test_a_claim_of_a_paused_job_is_found(play: Plays) -> None:
    forged = play()
    forged.scheduler.pause(job_of(forged))
    fire = START + 6 * MINUTE
    claim = json.loads(forged.find("occurrence.claimed.1", 4).state)
    claim |= {"fire_time": fire, "fires": 6, "next_fire": START + 7 * MINUTE}
    forged.add(occurrence_id(job_of(forged), fire), 1, "occurrence.claimed.1", **claim)
    (said,) = forged.said()
    assert "which is paused" in said


def test_a_pause_that_does_not_account_for_what_it_held_is_found(play: Plays) -> None:
    forged = play()
    forged.scheduler.pause(job_of(forged))
    forged.scheduler.advance(minutes=10)
    forged.scheduler.resume(job_of(forged))
    assert forged.said() == []
    skipped = forged.find("job.fires_skipped.1")
    forged.change(skipped, first=START + 8 * MINUTE, count=8)
    said = forged.said()
    assert any(f"{(START + 6 * MINUTE).isoformat()} of job" in line for line in said), said


def test_a_change_of_schedule_that_forgets_what_was_due_is_found(play: Plays) -> None:
    forged = play()
    forged.scheduler.outage(minutes=10)
    forged.scheduler.reschedule(job_of(forged), Every(3600))
    assert forged.said() == []
    skipped = forged.find("job.fires_skipped.1")
    forged.change(skipped, cause="calendar", next_fire=START + 6 * MINUTE)
    said = forged.said()
    assert any("was due before the schedule was changed" in line for line in said), said


def test_runs_that_nobody_ordered_are_found(play: Plays) -> None:
    forged = play()
    claim = json.loads(forged.find("occurrence.claimed.1", 1).state)
    for kind in ("trigger", "backfill"):
        forged.add(uuid4(), 1, "occurrence.claimed.1", **claim | {"kind": kind})
    assert [line.split(" (")[0] for line in forged.said()] == [
        "invariant 5: a trigger was claimed that nobody ordered",
        "invariant 5: a backfill was claimed that nobody ordered",
    ]


def test_a_claim_under_another_id_or_one_that_stands_still_is_found(play: Plays) -> None:
    forged = play()
    fire = START + 6 * MINUTE
    claim = json.loads(forged.find("occurrence.claimed.1", 4).state) | {"fire_time": fire}
    forged.add(uuid4(), 1, "occurrence.claimed.1", **claim)
    del claim["fires"]
    forged.add(occurrence_id(job_of(forged), fire), 1, "occurrence.claimed.1", **claim)
    first, second = forged.said()
    assert "whose occurrence of then has another id" in first
    assert "which did not move on from it" in second


def test_a_backfill_of_what_was_no_fire_time_is_found(play: Plays) -> None:
    forged = play()
    odd = START + timedelta(seconds=90)
    forged.add(job_of(forged), 2, "job.backfill_requested.1", start=START, end=START, fires=[odd])
    (said,) = forged.said()
    assert f"{odd.isoformat()} is no fire time of the schedule, as it then was" in said


def test_what_other_zone_data_computed_is_held_to_its_chain_alone(play: Plays) -> None:
    forged = play(DAILY)
    forged.scheduler.advance(days=3)
    moved = datetime(2027, 3, 5, 8, 30, tzinfo=UTC)
    forged.change(forged.find("occurrence.claimed.1", 2), next_fire=moved, tzdata="1999a")
    assert forged.said() == []
    forged.scheduler.advance(days=3)
    (said,) = forged.said()
    assert f"2027-03-05T07:30:00+00:00 of job {job_of(forged)} had its turn before" in said


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 9 * * *", "Europe/Berlin", exclude=["2027-03-03", "2027-03-04"]),
        Cron("30 2 * * *", "America/New_York", gap="skip"),
        Calendar("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "America/New_York", gap="skip"),
        Every(86_400, jitter=3600),
        Once(datetime(2027, 3, 20, tzinfo=UTC)),
        Every(3600, limit=40),
    ],
    ids=lambda schedule: schedule.kind,
)
def test_honest_schedules_of_all_kinds_have_nothing_to_say(play: Plays, schedule: Any) -> None:
    forged = play(schedule)
    forged.scheduler.advance(days=20)
    forged.scheduler.outage(days=2)
    forged.scheduler.advance(days=3)
    assert forged.said() == []


@pytest.mark.parametrize("kept", [None, 2])
def test_what_was_pruned_is_not_missed(play: Plays, kept: int | None) -> None:
    forged = play()
    job = job_of(forged)
    ordered = forged.scheduler.trigger(job, at=forged.scheduler.now - 2 * MINUTE)
    forged.scheduler.advance(minutes=2)
    moved = forged.find("occurrence.claimed.1", 3)
    pruned = [n for n in range(1, 5) if n != kept]
    for minute in pruned:
        forged.forget(occurrence_id(job, START + minute * MINUTE))
    forged.forget(ordered.id)
    assert forged.said() != []
    forged.add(
        log_stream("simulated"),
        1,
        "log.occurrences_pruned.1",
        since=START,
        until=START + 4.5 * MINUTE,
        kept=[str(occurrence_id(job, START + kept * MINUTE))] if kept else [],
        moves=[
            {
                "position": moved.position,
                "append_position": moved.position,
                "recorded_at": moved.recorded_at.isoformat(),
                "job_id": str(job),
                "fires": 4,
                "next_fire": (START + 5 * MINUTE).isoformat(),
            }
        ],
    )
    assert [str(v) for v in forged.scheduler.verify().violations] == []
    forged.forget(occurrence_id(job, START + 6 * MINUTE))
    (said,) = forged.said()
    assert f"{(START + 6 * MINUTE).isoformat()} of job {job} has no occurrence" in said


def test_on_the_real_log_a_missing_fire_time_is_found(
    scheduler: Scheduler, stage: Stage, database: Database
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    fired = [stage.claim_fire(job.id) for _ in range(3)]
    assert verify(PostgresLogScan(database)).ok
    state = database.query(
        database.sql("SELECT state FROM :schema.occurrence_events WHERE stream = %s"),
        (fired[1].id,),
    )[0][0]
    claim = json.loads(bytes(state)) | {"next_fire": (fired[2].fire_time + MINUTE).isoformat()}
    stranger = occurrence_id(job.id, fired[2].fire_time + 5 * MINUTE)
    claim |= {"fire_time": (fired[2].fire_time + 5 * MINUTE).isoformat(), "fires": 8}
    database.query(
        database.sql(
            "INSERT INTO :schema.occurrence_events (position, recorded_at, stream, version, topic,"
            " state) VALUES (nextval(:positions), clock_timestamp(), %s, 1,"
            " 'occurrence.claimed.1', %s)"
        ),
        (stranger, json.dumps(claim).encode()),
    )
    found = [v for v in verify(PostgresLogScan(database)).violations if v.invariant == 5]
    assert "has no occurrence, and nothing says why" in found[0].message
    assert stranger in {evidence.stream for evidence in found[0].evidence}
