"""A migrated namespace, its scheduler, and a stage on which occurrences are played.

The stage appends what a leader and a worker would append, one step at a time, so that a test can
ask what a client sees of any state.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from horolog import Scheduler
from horolog.application.decision import decide_on_fires, decide_on_occurrence, decide_on_partition
from horolog.application.log import Fences
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.domain.occurrence import OccurrenceState, decide_claim, ordered
from horolog.domain.occurrence_events import (
    Attempted,
    Claimed,
    DeadLettered,
    Failed,
    OccurrenceEvent,
    Succeeded,
)
from horolog.domain.origin import Origin
from horolog.domain.partition import Elected, PartitionState, Released
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates

if TYPE_CHECKING:
    from horolog.application.decision import Decision

LEADER = Origin("leader")


@pytest.fixture
def database(database_url: str, namespace: str) -> Generator[Database]:
    """A migrated namespace of the test's own."""
    opened = Database(database_url, namespace)
    migrate(opened)
    yield opened
    opened.close()


@pytest.fixture
def scheduler(database: Database) -> Generator[Scheduler]:
    with Scheduler(database.url, namespace=database.namespace, actor="ann") as client:
        yield client


@dataclass
class Stage:
    """A leader of every partition it needs, and a worker, in the test's own hand."""

    database: Database
    scheduler: Scheduler

    def __post_init__(self) -> None:
        self.log = PostgresLog(self.database)
        self.states = PostgresStates(self.database)
        self.tokens: dict[int, int] = {}

    def lead(self, partition: int) -> None:
        """Elects us, unless we lead it already."""
        if partition not in self.tokens:
            stream = partition_stream(self.database.namespace, partition)
            event = Elected(partition=partition, instance="stage", lease=3600.0, actor="stage")
            before = PartitionState(stream, partition)
            decision, after = decide_on_partition(before, [event], 3600.0)
            assert after.token is not None
            self.append(decision)
            self.tokens[partition] = after.token

    def leave(self) -> None:
        """Gives all partitions back, for a scanner to lead."""
        for partition, token in self.tokens.items():
            stream = partition_stream(self.database.namespace, partition)
            before = PartitionState(stream, partition, token, "stage", token)
            event = Released(partition=partition, instance="stage", actor="stage")
            self.append(decide_on_partition(before, [event], 0.0)[0])
        self.tokens.clear()

    def append(self, *decisions: Decision) -> None:
        fences = Fences("stage", self.tokens) if self.tokens else None
        verdicts = self.log.append(decisions, fences).verdicts
        assert verdicts == ["accepted"] * len(decisions), verdicts

    def claim_fire(self, job_id: UUID) -> OccurrenceState:
        """The claim of the job's next fire time, whenever that is."""
        job = self.states.job(job_id)
        assert job is not None
        fire = job.next_fire
        assert fire is not None
        self.lead(job.partition)
        following = job.definition.parsed_schedule().next_after(fire)
        before = ordered(occurrence_id(job.id, fire), job.id, job.partition, fire, "schedule")
        event = Claimed(
            job_id=job.id,
            job_version=job.version,
            fire_time=fire,
            attempt=1,
            partition=job.partition,
            token=self.tokens[job.partition],
            window=30.0,
            fires=job.fires + 1,
            next_fire=None if following is None else following.at,
            actor="leader",
        )
        (due,) = self.states.due([job_id])
        assert isinstance(due, DueJob)
        decision, _, claimed = decide_on_fires(job, due.due_at, [(before, event)], [])
        self.append(decision)
        return claimed[0]

    def claim_due(self, job_id: UUID) -> OccurrenceState:
        """The claim of the job's next fire time once that has come, as a leader makes it."""
        job = self.states.job(job_id)
        assert job is not None
        assert job.next_fire is not None
        while self.now() < job.next_fire:
            time.sleep(0.01)
        return self.claim_fire(job_id)

    def claim(self, occurrence: UUID) -> OccurrenceState:
        """The claim of an occurrence that was ordered, or is to be tried again."""
        (due,) = self.states.due([occurrence])
        assert isinstance(due, DueOccurrence)
        self.lead(due.occurrence.partition)
        event = decide_claim(
            due.occurrence,
            job_version=due.job.version,
            token=self.tokens[due.occurrence.partition],
            window_s=30.0,
            origin=LEADER,
        )
        return self.go_on(due.occurrence, event)

    def go_on(self, before: OccurrenceState, *events: OccurrenceEvent) -> OccurrenceState:
        decision, after = decide_on_occurrence(before, events, name="report")
        self.append(decision)
        return after

    def attempt(self, claimed: OccurrenceState) -> OccurrenceState:
        return self.go_on(claimed, Attempted(attempt=claimed.attempt, lease=30.0, actor="worker-1"))

    def succeed(self, running: OccurrenceState, result: object = None) -> OccurrenceState:
        event = Succeeded(attempt=running.attempt, seconds=0.5, result=result, actor="worker-1")
        return self.go_on(running, event)

    def fail(self, running: OccurrenceState, retry_in_s: float | None = None) -> OccurrenceState:
        retry_at = None if retry_in_s is None else self.now() + timedelta(seconds=retry_in_s)
        failed = Failed(
            attempt=running.attempt,
            kind="unknown" if retry_at else "permanent",
            error="no such card",
            retry_at=retry_at,
            actor="worker-1",
        )
        if retry_at is not None:
            return self.go_on(running, failed)
        dead = DeadLettered(
            cause="hopeless", owner="billing", kind="permanent", error="no such card"
        )
        return self.go_on(running, failed, dead)

    def dead(self, job_id: UUID) -> OccurrenceState:
        return self.fail(self.attempt(self.claim_fire(job_id)))

    def now(self) -> datetime:
        return self.database.query(self.database.sql("SELECT clock_timestamp()"))[0][0]

    def events(self) -> int:
        """How many events the log holds."""
        text = (
            "SELECT (SELECT count(*) FROM :schema.job_events)"
            " + (SELECT count(*) FROM :schema.occurrence_events)"
        )
        return self.database.query(self.database.sql(text))[0][0]


@pytest.fixture
def stage(database: Database, scheduler: Scheduler) -> Stage:
    return Stage(database, scheduler)
