"""Jobs, occurrences and dead letters listed from the rows in memory."""

from datetime import datetime
from uuid import UUID

from pydantic_core import from_json

from horolog.application.answers.dead_letter import DeadLetter
from horolog.application.answers.index_entry import IndexEntry
from horolog.application.answers.occurrence import Occurrence, last_words, meant_for
from horolog.application.queries.ports import JobFilter, OccurrenceFilter
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job import JobState
from horolog.domain.occurrence import Phase
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.states import SimulatedStates
from horolog.projections.rows import Execution, NextRun

_BEFORE_ALL = UUID(int=0)


class SimulatedJobList:
    """As :class:`ListsJobs` promises."""

    def __init__(self, log: SimulatedLog, states: SimulatedStates) -> None:
        self._tables = log.tables
        self._states = states

    def jobs(self, wanted: JobFilter, *, after: UUID | None, limit: int) -> list[JobState]:
        ids = sorted(
            row.id
            for row in self._tables.jobs.values()
            if row.id > (after or _BEFORE_ALL)
            and wanted.status in (None, row.status)
            and wanted.name in (None, row.name)
            and wanted.subject in (None, from_json(row.definition).get("subject"))
            and (
                wanted.label is None
                or (
                    wanted.label[0] in row.labels
                    and wanted.label[1] in (None, row.labels[wanted.label[0]])
                )
            )
        )
        return list(self._states.jobs(ids[:limit]).values())


class SimulatedOccurrenceList:
    """As :class:`ListsOccurrences` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables

    def occurrence(self, occurrence_id: UUID) -> Occurrence | None:
        row = self._tables.next_runs.get(occurrence_id)
        if row is not None and row.run.kind != "job":
            return self._answer(row.run, row.run.state)
        ended = self._tables.executions.get(occurrence_id)
        return None if ended is None else self._answer(ended, ended.state)

    def occurrences(
        self,
        wanted: OccurrenceFilter,
        *,
        after: UUID | None,
        limit: int,
        newest_first: bool = False,
    ) -> list[Occurrence]:
        open_runs = (r.run for r in self._tables.next_runs.values() if r.run.kind != "job")
        found = [
            row
            for row in (*open_runs, *self._tables.executions.values())
            if wanted.job_id in (None, row.job_id)
            and wanted.state in (None, row.state)
            and (wanted.since is None or row.fire_time >= wanted.since)
            and (wanted.until is None or row.fire_time < wanted.until)
            and (after is None or (row.id < after if newest_first else row.id > after))
        ]
        found.sort(key=lambda row: row.id, reverse=newest_first)
        return [self._answer(row, row.state) for row in found[:limit]]

    def _answer(self, row: NextRun | Execution, state: str) -> Occurrence:
        events = self._tables.streams.get(row.id, [])
        last = events[row.version - 1] if 0 < row.version <= len(events) else None
        index = self._tables.next_runs.get(row.id)
        phase: Phase = state  # pyright: ignore[reportAssignmentType] - rows are written from phases
        kind: OccurrenceKind = row.kind  # pyright: ignore[reportAssignmentType]
        return Occurrence(
            id=row.id,
            job_id=row.job_id,
            state=phase,
            fire_time=row.fire_time,
            attempt=row.attempt,
            kind=kind,
            failures=row.failures,
            version=row.version,
            partition=row.partition,
            due_at=None if index is None else index.due_at,
            finished_at=None if index is not None or last is None else last.recorded_at,
            since=None if last is None else last.recorded_at,
            **last_words(*((last.topic, last.state) if last is not None else (None, None))),
            jittered_at=meant_for(events[0].state if events else None),
        )


class SimulatedDeadLetterList:
    """As :class:`ListsDeadLetters` and :class:`FindsDeadLetters` promise."""

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables

    def dead_letters(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> list[DeadLetter]:
        found = sorted(
            (
                row
                for row in self._tables.dead_letters.values()
                if owner in (None, row.owner)
                and name in (None, row.name)
                and row.id > (after or _BEFORE_ALL)
            ),
            key=lambda row: row.id,
        )
        return [
            DeadLetter(
                id=row.id,
                job_id=row.job_id,
                name=row.name,
                owner=row.owner,
                cause=row.cause,
                kind=row.kind,
                error=row.error,
                attempt=row.attempt,
                fire_time=row.fire_time,
                since=self._tables.streams[row.id][-1].recorded_at,
            )
            for row in found[:limit]
        ]

    def dead(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> list[UUID]:
        letters = self.dead_letters(owner=owner, name=name, after=after, limit=limit)
        return [letter.id for letter in letters]


class SimulatedDueNext:
    """As :class:`ListsDueNext` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables

    def due_next(self, until: datetime, limit: int) -> list[IndexEntry]:
        rows = sorted(
            (row.due_at, row.run.id, row.run)
            for row in self._tables.next_runs.values()
            if not row.run.look and row.lane is None and row.due_at < until
        )
        return [
            IndexEntry(
                due_at=due_at,
                id=run.id,
                job_id=run.job_id,
                name=self._tables.jobs[run.job_id].name,
                kind=run.kind,
                state=run.state,
                fire_time=run.fire_time,
                attempt=run.attempt,
                failures=run.failures,
                version=run.version,
                partition=run.partition,
            )
            for due_at, _, run in rows[:limit]
        ]
