"""States read from the rows in memory; their definitions are parsed anew, as from a real store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import cast
from uuid import UUID

from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job import JobState, JobStatus, fold
from horolog.domain.lanes import QueueLimit
from horolog.domain.occurrence import OccurrenceState, Phase, evolve_all, ordered
from horolog.domain.occurrence_events import Claimed, Lost, OccurrenceEvent, Replayed
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.tables import IndexRow
from horolog.projections.rows import JobRow


class SimulatedStates:
    """As :class:`ReadsStates` and :class:`ReadsDue` promise, of the log that is given."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log
        self._tables = log.tables

    def job(self, job_id: UUID) -> JobState | None:
        row = self._tables.jobs.get(job_id)
        return None if row is None else self._job(row)

    def job_by_key(self, key: str) -> JobState | None:
        found = (row for row in list(self._tables.jobs.values()) if row.key == key)
        row = next(found, None)
        return None if row is None else self._job(row)

    def jobs(self, ids: Sequence[UUID]) -> dict[UUID, JobState]:
        rows = (self._tables.jobs.get(job_id) for job_id in ids)
        return {row.id: self._job(row) for row in rows if row is not None}

    def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        recorded = self._log.stream(occurrence_id, limit=1_000_000)
        events = [e.event for e in recorded if isinstance(e.event, OccurrenceEvent)]
        if events and isinstance(events[0], Claimed):
            return evolve_all(None, occurrence_id, events)
        row = self._tables.next_runs.get(occurrence_id)
        if row is not None:
            return None if row.run.kind == "job" else _occurrence(row)
        ended = self._tables.executions.get(occurrence_id)
        if ended is None:
            return None
        kind = cast("OccurrenceKind", ended.kind)
        before = ordered(ended.id, ended.job_id, ended.partition, ended.fire_time, kind)
        return evolve_all(before, occurrence_id, events)

    def unfinished(
        self, job_id: UUID, *, after: UUID | None = None, limit: int = 1000
    ) -> list[OccurrenceState]:
        found = [
            row
            for row in list(self._tables.next_runs.values())
            if row.run.job_id == job_id
            and row.run.kind != "job"
            and (after is None or row.run.id > after)
        ]
        return [_occurrence(row) for row in sorted(found, key=lambda row: row.run.id)[:limit]]

    def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        present = (self._tables.next_runs.get(identity) for identity in ids)
        rows = [row for row in present if row is not None and row.run.job_id in self._tables.jobs]
        return [self._due(row) for row in sorted(rows, key=lambda row: (row.due_at, row.run.id))]

    def _due(self, row: IndexRow) -> DueJob | DueOccurrence:
        job = self._job(self._tables.jobs[row.run.job_id])
        if row.run.kind != "job":
            occurrence = _occurrence(row)
            if occurrence.definition_version is not None:
                job = replace(job, definition=self._definition_at(job.id, occurrence))
            lost, replayed, since = self._fate(occurrence)
            if job.definition.retry.max_elapsed is None:
                since = None
            return DueOccurrence(
                job, occurrence, row.due_at, row.position, lost, replayed, since, self._limit(job)
            )
        asks = job.definition.overlap != "allow"
        unfinished = len(self.unfinished(job.id, limit=1000)) if asks else 0
        return DueJob(job, row.due_at, unfinished, self._limit(job))

    def _limit(self, job: JobState) -> QueueLimit | None:
        return self._tables.queue_limits.get(job.definition.queue)

    def _definition_at(self, job_id: UUID, occurrence: OccurrenceState) -> JobDefinition:
        assert occurrence.definition_version is not None
        events = self._log.stream(job_id, limit=occurrence.definition_version)
        state = fold(job_id, [recorded.event for recorded in events])
        assert state is not None, f"job {job_id} has no events"
        return state.definition

    def _fate(self, occurrence: OccurrenceState) -> tuple[bool, bool, datetime | None]:
        """Whether an attempt of it was lost, whether it was replayed since, and when its first
        attempt was claimed or it was replayed last."""
        events = self._tables.streams.get(occurrence.id, [])
        fates = [event.topic for event in events if event.topic in (Lost.topic, Replayed.topic)]
        lost = Lost.topic in fates
        begun = [e.recorded_at for e in events if e.version == 1 or e.topic == Replayed.topic]
        return lost, lost and fates[-1] == Replayed.topic, begun[-1] if begun else None

    def _job(self, row: JobRow) -> JobState:
        index = self._tables.next_runs.get(row.id)
        return JobState(
            row.id,
            row.version,
            cast("JobStatus", row.status),
            row.partition,
            _definition(row.definition),
            row.key,
            row.held_fire if index is None else index.run.fire_time,
            row.fires if index is None else index.run.fires,
        )


def _occurrence(row: IndexRow) -> OccurrenceState:
    run = row.run
    return OccurrenceState(
        run.id,
        run.job_id,
        run.partition,
        run.fire_time,
        cast("OccurrenceKind", run.kind),
        run.version,
        cast("Phase", run.state),
        run.attempt,
        run.failures,
        due=row.due_at,
        definition_version=run.fires or None,
    )


@lru_cache(maxsize=8_192)
def _definition(text: str) -> JobDefinition:
    return JobDefinition.model_validate_json(text)
