"""What was ordered before, found in the log in memory."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from horolog.domain.event import read_event
from horolog.domain.job_events import DEFINING, JobEvent, Triggered
from horolog.domain.log_events import OccurrencesPruned
from horolog.domain.occurrence import Phase
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedOrders:
    """As :class:`FindsTriggers` and :class:`FindsOccurrences` promise."""

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables

    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:
        for stored in self._tables.streams.get(job_id, []):
            if stored.topic == Triggered.topic:
                event = read_event(stored.topic, stored.state)
                if isinstance(event, Triggered) and event.request_id == request_id:
                    return event.occurrence_id
        return None

    def existing(self, ids: Sequence[UUID]) -> set[UUID]:
        tables = self._tables
        return {
            identity
            for identity in ids
            if identity in tables.next_runs
            or identity in tables.executions
            or identity in tables.streams
        }

    def outcomes(self, job_id: UUID, fires: Sequence[datetime]) -> dict[datetime, set[Phase]]:
        wanted, found = set(fires), dict[datetime, set[Phase]]()
        unfinished = (row.run for row in self._tables.next_runs.values())
        for row in (*unfinished, *self._tables.executions.values()):
            if (
                row.job_id == job_id
                and row.kind in ("schedule", "backfill")
                and row.fire_time in wanted
            ):
                state: Phase = row.state  # pyright: ignore[reportAssignmentType]
                found.setdefault(row.fire_time, set()).add(state)
        return found

    def defining(self, job_id: UUID) -> list[tuple[int, datetime, JobEvent]]:
        return [
            (stored.version, stored.recorded_at, event)
            for stored in self._tables.streams.get(job_id, [])
            if isinstance(event := read_event(stored.topic, stored.state), DEFINING)
        ]

    def left_the_log(self, since: datetime) -> list[tuple[datetime, datetime]]:
        said = (
            event
            for stored in self._tables.events
            if stored.topic == OccurrencesPruned.topic
            and stored.recorded_at >= since
            and isinstance(event := read_event(stored.topic, stored.state), OccurrencesPruned)
        )
        return [(event.since, event.until) for event in said if not event.more]
