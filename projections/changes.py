"""What a window of the log changes in the rows of the read models, and how its events are held."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from horolog.domain.errors import ProjectionStopped
from horolog.domain.event import Event
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.projections.rows import DeadLetter, Execution, JobRow, NextRun

PROJECTIONS: Final = ("next_runs", "jobs", "executions", "dead_letters", "partitions")

VERSION: Final = 1
"""Grows with every change of the fold that gives other rows: a rebuild that was begun by another
version is not gone on with."""

LogRow = tuple[int, datetime, UUID, int, str, bytes]
"""An event as it is stored: position, recorded_at, stream, version, topic, state."""

Entry = tuple[int, datetime, int, Event]
"""An event of one stream: position, recorded_at, version, and what it says."""


class Placed(NamedTuple):
    """A row of the index with its absolute time, and the position of the append that wrote it."""

    row: NextRun
    due_at: datetime
    position: int


class DatedJob(NamedTuple):
    """A job's row; ``registered_at`` is ``None`` where the job was there before the window."""

    row: JobRow
    registered_at: datetime | None
    changed_at: datetime


class Led(NamedTuple):
    """Who leads a partition; what else is in its row (lease, publishing) is not from the log."""

    partition: int
    version: int
    instance: str | None
    token: int | None


@dataclass(slots=True)
class Changes:
    """Rows replace those of the same id; the times beside them are those of the events."""

    position: int = 0
    events: int = 0
    next_runs: list[Placed] = field(default_factory=list[Placed])
    dropped: list[UUID] = field(default_factory=list[UUID])
    jobs: list[DatedJob] = field(default_factory=list[DatedJob])
    executions: list[tuple[Execution, datetime]] = field(
        default_factory=list[tuple[Execution, datetime]]
    )
    unfinished_again: list[UUID] = field(default_factory=list[UUID])
    """Occurrences that are no longer among the executions."""
    dead_letters: list[tuple[DeadLetter, datetime]] = field(
        default_factory=list[tuple[DeadLetter, datetime]]
    )
    closed_letters: list[UUID] = field(default_factory=list[UUID])
    leaders: dict[int, Led] = field(default_factory=dict[int, Led])


class KnowsBefore(Protocol):
    """States as they were before a window. What does not exist is missing from the answer."""

    def jobs(self, ids: Sequence[UUID]) -> Mapping[UUID, JobState]: ...

    def occurrences(self, ids: Sequence[UUID]) -> Mapping[UUID, OccurrenceState]:
        """Unfinished ones, and those that have ended but may still be replayed or discarded."""
        ...


def stopped(position: int, stream: UUID, version: int, topic: str, why: str) -> ProjectionStopped:
    """The refusal of one event, which it names."""
    return ProjectionStopped(
        f"the event at position {position} ({stream}:{version}, {topic}) cannot be applied: {why}",
        position=position,
    )


def misplaced(entry: Entry, stream: UUID, why: str) -> ProjectionStopped:
    """The refusal of an event that was read and cannot be where it is."""
    position, _, version, event = entry
    return stopped(position, stream, version, event.topic, why)
