"""The log in memory as ``horolog verify`` reads one: whole, raw, and beside its index."""

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from horolog.application.verify.ports import IndexedRow, LoggedJob, ScannedEvent
from horolog.domain.event import read_event
from horolog.domain.job import fold
from horolog.domain.job_events import JobEvent, Registered, Rescheduled
from horolog.domain.log_events import OccurrencesPruned
from horolog.domain.retry import Retry
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.tables import StoredEvent as Kept
from horolog.projections.pruned import Pruned


class SimulatedLogScan:
    """As :class:`horolog.application.verify.ports.ScansLog` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables

    def page(self, after: int, limit: int) -> list[ScannedEvent]:
        events = self._tables.events
        start = bisect_right(events, after, key=lambda event: event.position)
        return [_stored(event) for event in events[start : start + limit]]

    def doubles(self, after: int, until: int) -> list[ScannedEvent]:
        beside = pairwise(self._tables.events)
        found = [later for one, later in beside if one.position == later.position]
        return [_stored(event) for event in found if after < event.position <= until]

    def before(self, stream: bytes, position: int) -> list[ScannedEvent]:
        events = self._tables.streams.get(UUID(bytes=stream), [])
        return [_stored(event) for event in events if event.position < position]

    def allowed_attempts(self, jobs: Sequence[bytes]) -> dict[bytes, int]:
        allowed: dict[bytes, int] = {}
        for job in jobs:
            for event in self._tables.streams.get(UUID(bytes=job), []):
                stated = from_json(event.state)
                part = {"job.registered.1": "definition", "job.policies_changed.1": "changes"}
                if (key := part.get(event.topic)) is None:
                    continue
                retry = stated.get(key, {}).get("retry", {})
                if retry or key == "definition":
                    most = retry.get("max_attempts", Retry().max_attempts)
                    allowed[job] = max(most, allowed.get(job, 0))
        return allowed

    def schedules(self, job: bytes) -> list[tuple[int, dict[str, Any]]]:
        found: list[tuple[int, dict[str, Any]]] = []
        for stored in self._tables.streams.get(UUID(bytes=job), []):
            match read_event(stored.topic, stored.state):
                case Registered() as event:
                    found.append((stored.version, event.definition.schedule))
                case Rescheduled() as event:
                    found.append((stored.version, event.schedule))
                case _:
                    pass
        return found

    def pruned(self) -> Pruned:
        said = (
            (stored.position, read_event(stored.topic, stored.state))
            for stored in self._tables.events
            if stored.topic == OccurrencesPruned.topic
        )
        return Pruned((at, event) for at, event in said if isinstance(event, OccurrencesPruned))

    @contextmanager
    def snapshot(self) -> Generator["SimulatedSnapshot"]:
        yield SimulatedSnapshot(self._tables.events, self)

    def streams(self) -> dict[UUID, list[Kept]]:
        return self._tables.streams

    def rows(self, *, of_jobs: bool) -> Iterator[IndexedRow]:
        for row in sorted(self._tables.next_runs.values(), key=lambda row: row.run.id):
            run = row.run
            if (run.kind == "job") is of_jobs:
                yield IndexedRow(
                    run.id,
                    run.job_id,
                    run.kind,
                    run.state,
                    run.version,
                    run.attempt,
                    run.fire_time,
                    row.due_at,
                )


class SimulatedSnapshot:
    """As :class:`horolog.application.verify.ports.Snapshot` promises: nothing moves meanwhile."""

    def __init__(self, events: Sequence[Kept], scan: SimulatedLogScan) -> None:
        self.position = events[-1].position if events else 0
        self._scan = scan

    def jobs(self) -> Iterator[LoggedJob]:
        for stream, kept in sorted(self._scan.streams().items()):
            events = [
                event
                for stored in kept
                if isinstance(event := read_event(stored.topic, stored.state), JobEvent)
            ]
            state = fold(stream, events)
            if state is not None:
                yield LoggedJob(stream, kept[-1].version, len(kept), state.status == "active")

    def indexed_jobs(self) -> Iterator[IndexedRow]:
        return self._scan.rows(of_jobs=True)

    def indexed_occurrences(self) -> Iterator[IndexedRow]:
        return self._scan.rows(of_jobs=False)

    def started(self, occurrences: Sequence[UUID]) -> set[UUID]:
        return {identity for identity in occurrences if identity in self._scan.streams()}


def _stored(event: Kept) -> ScannedEvent:
    return ScannedEvent(
        event.position,
        event.recorded_at,
        event.stream.bytes,
        event.version,
        event.topic,
        event.state,
    )
