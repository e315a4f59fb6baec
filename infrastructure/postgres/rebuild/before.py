"""States as they were before a window: from the tables of the set that is filled, and the log.

The rows of unfinished occurrences and of jobs are states. An occurrence that has ended has no row
there; if something happens to it afterwards (a replay), its earlier events are read again.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from uuid import UUID

from horolog.domain.event import read_event
from horolog.domain.job import JobState
from horolog.domain.job import evolve as evolve_job
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence import OccurrenceState, evolve_all
from horolog.domain.occurrence_events import Claimed
from horolog.domain.orders import ordered_by
from horolog.infrastructure.postgres.arrays import Uuids
from horolog.infrastructure.postgres.database import Connection, Row
from horolog.infrastructure.postgres.rebuild.sets import TableSet
from horolog.infrastructure.postgres.states import (
    JOB_COLUMNS,
    index_occurrence,
    job_of,
)

# The primary keys of the set's jobs and next_runs.
_JOBS = f"""
    SELECT {JOB_COLUMNS}, coalesce(r.fire_time, j.held_fire), coalesce(r.fires, j.fires)
    FROM unnest(%b) AS w (id)
    JOIN :other.jobs j ON j.id = w.id LEFT JOIN :other.next_runs r ON r.id = w.id
"""
# The primary key of the set's next_runs.
_INDEXED = """
    SELECT r.id, r.job_id, r.partition, r.fire_time, r.kind, r.version, r.state, r.attempt,
           r.failures, r.due_at, r.look, r.position, r.fires
    FROM unnest(%b) AS w (id) JOIN :other.next_runs r ON r.id = w.id
"""
# The primary keys of the months of the log.
_EARLIER = """
    SELECT e.stream, e.version, e.topic, e.state
    FROM unnest(%b) AS w (id) JOIN :schema.occurrence_events e ON e.stream = w.id
    WHERE e.position <= %s ORDER BY e.stream, e.version
"""
# The primary keys of the set's dead letters and of job_events.
_ORDERING = """
    SELECT e.stream, e.version, e.recorded_at, e.topic, e.state
    FROM :other.dead_letters d JOIN :schema.job_events e ON e.stream = d.job_id
    WHERE d.id = %s ORDER BY e.version
"""


class StatesBefore:
    """As :class:`horolog.projections.changes.KnowsBefore` promises, at ``position``."""

    def __init__(self, connection: Connection, tables: TableSet) -> None:
        self._connection = connection
        self.position = 0
        self._jobs = tables.sql(_JOBS)
        self._indexed = tables.sql(_INDEXED)
        self._earlier = tables.sql(_EARLIER)
        self._ordering = tables.sql(_ORDERING)

    def jobs(self, ids: Sequence[UUID]) -> dict[UUID, JobState]:
        if not ids:
            return {}
        rows = self._connection.execute(self._jobs, (Uuids(ids),), binary=True)
        return {row[0]: job_of(row) for row in rows}

    def occurrences(self, ids: Sequence[UUID]) -> dict[UUID, OccurrenceState]:
        if not ids:
            return {}
        rows = self._connection.execute(self._indexed, (Uuids(ids),), binary=True)
        states = {row[0]: index_occurrence(row) for row in rows}
        if ended := [identity for identity in ids if identity not in states]:
            states |= self._ended(ended)
        return states

    def _ended(self, ids: Sequence[UUID]) -> dict[UUID, OccurrenceState]:
        rows = self._connection.execute(
            self._earlier, (Uuids(ids), self.position), binary=True
        ).fetchall()
        return {
            stream: state
            for stream, events in groupby(rows, _stream)
            if (state := self._state(stream, events)) is not None
        }

    def _state(self, stream: UUID, rows: Iterable[Row]) -> OccurrenceState | None:
        events = [read_event(topic, state) for _, _, topic, state in rows]
        if isinstance(events[0], Claimed):
            return evolve_all(None, stream, events)
        # Ended before its claim: only what ordered it says what it was.
        order = self._order(stream)
        return None if order is None else evolve_all(order, stream, events)

    def _order(self, occurrence: UUID) -> OccurrenceState | None:
        job: JobState | None = None
        rows = self._connection.execute(self._ordering, (occurrence,), binary=True)
        for stream, _, recorded_at, topic, state in rows:
            event = read_event(topic, state)
            if isinstance(event, JobEvent):
                job = evolve_job(job, stream, event)
                for order in ordered_by(job, event, recorded_at):
                    if order.id == occurrence:
                        return order
        return None


def _stream(row: Row) -> UUID:
    return row[0]
