"""States read from the read models, in one query each."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import read_event
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job import JobState, JobStatus, fold
from horolog.domain.job_events import DEFINING
from horolog.domain.lanes import QueueLimit
from horolog.domain.occurrence import OccurrenceState, Phase, evolve_all, ordered
from horolog.domain.occurrence_events import Claimed, Lost, Replayed
from horolog.infrastructure.postgres.arrays import Uuids
from horolog.infrastructure.postgres.database import Database, Row

JOB_COLUMNS = "j.id, j.version, j.status, j.partition, j.definition::text, j.key"
_INDEX = (
    "r.id, r.job_id, r.partition, r.fire_time, r.kind, r.version, r.state, r.attempt, r.failures,"
    " r.due_at, r.look, r.position, r.fires"
)

# The primary keys of jobs and next_runs (a job's row has the job's id).
_JOBS_WHERE = f"""
    SELECT {JOB_COLUMNS}, coalesce(r.fire_time, j.held_fire), coalesce(r.fires, j.fires)
    FROM :schema.jobs j LEFT JOIN :schema.next_runs r ON r.id = j.id
    WHERE {{}}
"""

# next_runs_unfinished.
_UNFINISHED = f"""
    SELECT {_INDEX} FROM :schema.next_runs r
    WHERE r.job_id = %(job)s AND r.kind <> 'job' AND r.id > %(after)s
    ORDER BY r.id LIMIT %(limit)s
"""

# The primary keys of next_runs and jobs; occurrence_events_fates; the count uses
# next_runs_unfinished and stops early.
_DUE = f"""
    SELECT {_INDEX}, {JOB_COLUMNS}, coalesce(n.fire_time, j.held_fire), coalesce(n.fires, j.fires),
           CASE WHEN r.kind = 'job' AND j.definition ->> 'overlap' IS NOT NULL
                THEN (SELECT count(*) FROM (
                    SELECT FROM :schema.next_runs u
                    WHERE u.job_id = r.job_id AND u.kind <> 'job' LIMIT 1000) unfinished)
                ELSE 0 END,
           CASE WHEN r.attempt > 0 THEN (
               SELECT array_agg(e.topic ORDER BY e.version)
               FROM :schema.occurrence_events e
               WHERE e.stream = r.id AND e.topic IN ('occurrence.lost.1', 'occurrence.replayed.1'))
           END,
           CASE WHEN r.attempt > 0 AND j.definition -> 'retry' ->> 'max_elapsed' IS NOT NULL THEN (
               SELECT max(e.recorded_at) FROM :schema.occurrence_events e
               WHERE e.stream = r.id AND (e.version = 1 OR e.topic = 'occurrence.replayed.1'))
           END,
           q.queue, q.most, q.rate
    FROM unnest(%b) AS wanted (id)
    JOIN :schema.next_runs r ON r.id = wanted.id
    JOIN :schema.jobs j ON j.id = r.job_id
    LEFT JOIN :schema.next_runs n ON n.id = r.job_id AND r.kind <> 'job'
    LEFT JOIN LATERAL (SELECT * FROM :schema.queue_limits x WHERE x.queue = j.queue OFFSET 0) q
        ON true
    ORDER BY r.due_at, r.id
"""

_EVENTS = """
    SELECT version, topic, state FROM :schema.occurrence_events WHERE stream = %s ORDER BY version
"""

# An ordered occurrence that was skipped before its claim has no Claimed event to begin with: what
# it was is in the execution log.
_ORDERED_AND_ENDED = """
    SELECT x.id, x.job_id, x.partition, x.fire_time, x.kind
    FROM :schema.executions x WHERE x.id = %s
"""
# The primary key of job_events.
_DEFINING = """
    SELECT version, topic, state FROM :schema.job_events
    WHERE stream = %s AND version <= %s AND topic = ANY (%s) ORDER BY version
"""
_NIL = UUID(int=0)
_TOPICS = [event.topic for event in DEFINING]
_ORDERED = f"SELECT {_INDEX} FROM :schema.next_runs r WHERE r.id = %s AND r.kind <> 'job'"


class PostgresStates:
    """As :class:`ReadsStates` and :class:`ReadsDue` promise; shared by threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._job_by_id = database.sql(_JOBS_WHERE.format("j.id = %s"))
        self._job_by_key = database.sql(_JOBS_WHERE.format("j.key = %s"))
        self._jobs_by_id = database.sql(_JOBS_WHERE.format("j.id = ANY (%b)"))
        self._unfinished = database.sql(_UNFINISHED)
        self._due = database.sql(_DUE)
        self._events = database.sql(_EVENTS)
        self._ordered = database.sql(_ORDERED)
        self._ordered_and_ended = database.sql(_ORDERED_AND_ENDED)
        self._defining = database.sql(_DEFINING)
        self._definition_at = lru_cache(maxsize=1024)(self._read_definition)

    def job(self, job_id: UUID) -> JobState | None:
        rows = self._database.query(self._job_by_id, (job_id,))
        return job_of(rows[0]) if rows else None

    def job_by_key(self, key: str) -> JobState | None:
        rows = self._database.query(self._job_by_key, (key,))
        return job_of(rows[0]) if rows else None

    def jobs(self, ids: Sequence[UUID]) -> dict[UUID, JobState]:
        if not ids:
            return {}
        states = (job_of(row) for row in self._database.query(self._jobs_by_id, (Uuids(ids),)))
        return {state.id: state for state in states}

    def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        events = [
            read_event(topic, bytes(state), where=f"{occurrence_id}:{version}")
            for version, topic, state in self._database.query(self._events, (occurrence_id,))
        ]
        if events and isinstance(events[0], Claimed):
            return evolve_all(None, occurrence_id, events)
        if rows := self._database.query(self._ordered, (occurrence_id,)):
            return index_occurrence(rows[0])
        if rows := self._database.query(self._ordered_and_ended, (occurrence_id,)):
            return evolve_all(ordered(*rows[0]), occurrence_id, events)
        return None

    def unfinished(
        self, job_id: UUID, *, after: UUID | None = None, limit: int = 1000
    ) -> list[OccurrenceState]:
        params = {"job": job_id, "after": after or _NIL, "limit": limit}
        rows = self._database.query(self._unfinished, params)
        return [index_occurrence(row) for row in rows]

    def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        return [
            self._as_ordered(_due(row)) for row in self._database.query(self._due, (Uuids(ids),))
        ]

    def _as_ordered(self, row: DueJob | DueOccurrence) -> DueJob | DueOccurrence:
        """The row; a run of an earlier definition with the job as it was defined then."""
        if isinstance(row, DueJob) or row.occurrence.definition_version is None:
            return row
        definition = self._definition_at(row.job.id, row.occurrence.definition_version)
        return replace(row, job=replace(row.job, definition=definition))

    def _read_definition(self, job_id: UUID, version: int) -> JobDefinition:
        rows = self._database.query(self._defining, (job_id, version, _TOPICS))
        events = (
            read_event(topic, bytes(state), where=f"{job_id}:{number}")
            for number, topic, state in rows
        )
        state = fold(job_id, events)
        assert state is not None, f"job {job_id} has no events"
        return state.definition


def _due(row: Row) -> DueJob | DueOccurrence:
    index, job, (next_fire, job_fires, unfinished, fates, since) = row[:13], row[13:19], row[19:24]
    limit = None if row[24] is None else QueueLimit(row[25], row[26])
    if index[4] == "job":
        state = job_of((*job, index[3], index[12]))
        return DueJob(state, cast("datetime", index[9]), unfinished, limit)
    state = job_of((*job, next_fire, job_fires))
    known = cast("list[str]", fates or [])
    lost = Lost.topic in known
    replayed = lost and known[-1] == Replayed.topic
    run = index_occurrence(index)
    return DueOccurrence(state, run, index[9], index[11], lost, replayed, since, limit)


def job_of(row: Row) -> JobState:
    """The state behind a row of ``JOB_COLUMNS`` and the fire time and fires of its index row."""
    job_id, version, status, partition, definition, key, next_fire, fires = row
    return JobState(
        job_id,
        version,
        cast("JobStatus", status),
        partition,
        _definition(definition),
        key,
        next_fire,
        fires,
    )


def index_occurrence(row: Sequence[Any]) -> OccurrenceState:
    """The state behind a row of the index."""
    identity, job_id, partition, fire_time, kind, version, state, attempt, failures, due_at = row[
        :10
    ]
    return OccurrenceState(
        identity,
        job_id,
        partition,
        fire_time,
        cast("OccurrenceKind", kind),
        version,
        cast("Phase", state),
        attempt,
        failures,
        due=due_at,
        definition_version=row[12] or None,
    )


@lru_cache(maxsize=8_192)
def _definition(text: str) -> JobDefinition:
    """Definitions are immutable and recur with every fire; parsing one costs some 20 µs."""
    try:
        return JobDefinition.model_validate_json(text)
    except ValueError as error:
        raise UnreadableEvent(
            "a job's definition says what this release does not know (was it written by a newer"
            f" one?): {error}"
        ) from error
