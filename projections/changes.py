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
from horolog.projections.rows import DeadLetter, Execution, JobRow, NextRun, job_next_run

PROJECTIONS: Final = ("next_runs", "jobs", "executions", "dead_letters", "partitions")

VERSION: Final = 1
"""Grows with every change of the fold that gives other rows: a rebuild that was begun by another
version is not gone on with."""

LogRow = tuple[int, datetime, UUID, int, str, bytes, int]
"""An event as it is stored: position, recorded_at, stream, version, topic, state; and the last
position of its append, 0 where that follows from the rows behind it.

``BEGAN_AND_ENDED`` in place of the version: it is the first claim of an occurrence that has ended
within the window, and stands for all of its events.
"""

BEGAN_AND_ENDED: Final = 0

Entry = tuple[int, datetime, int, Event]
"""An event of one stream: position, recorded_at, version, and what it says."""


class Placed(NamedTuple):
    """A row of the index with its absolute time, and the position of the append that wrote it."""

    row: NextRun
    due_at: datetime
    position: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Where claims have moved a job, and the position of the append of the last one: most of them
    are outdone by another before anything is written, and never become a row."""

    state: JobState
    position: int

    def placed(self) -> Placed | None:
        row = job_next_run(self.state)
        if row is None:
            return None
        assert row.due_at is not None
        return Placed(row, row.due_at, self.position)


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
    """What became of each row; ``None``: there is no such row. Later changes replace earlier ones.

    ``born`` are the rows of the index that were not there before. The states are those after the
    window, of jobs and of occurrences that something can still happen to.
    """

    position: int = 0
    events: int = 0
    index: dict[UUID, Placed | Standing | None] = field(
        default_factory=dict[UUID, Placed | Standing | None]
    )
    born: set[UUID] = field(default_factory=set[UUID])
    jobs: dict[UUID, DatedJob] = field(default_factory=dict[UUID, DatedJob])
    executions: dict[UUID, tuple[Execution, datetime] | None] = field(
        default_factory=dict[UUID, tuple[Execution, datetime] | None]
    )
    dead_letters: dict[UUID, tuple[DeadLetter, datetime] | None] = field(
        default_factory=dict[UUID, tuple[DeadLetter, datetime] | None]
    )
    leaders: dict[int, Led] = field(default_factory=dict[int, Led])
    job_states: dict[UUID, JobState] = field(default_factory=dict[UUID, JobState])
    occurrence_states: dict[UUID, OccurrenceState] = field(
        default_factory=dict[UUID, OccurrenceState]
    )

    @property
    def rows(self) -> int:
        """How many rows there are to write."""
        return len(self.index) + len(self.jobs) + len(self.executions) + len(self.dead_letters)

    def add(self, later: "Changes") -> None:
        """Takes in the changes of the next window."""
        self.position = later.position
        self.events += later.events
        for identity, placed in later.index.items():
            if placed is None and identity in self.born:
                self.born.discard(identity)
                del self.index[identity]
                self.occurrence_states.pop(identity, None)
            else:
                self.index[identity] = placed
        self.born |= later.born
        for job_id, job in later.jobs.items():
            earlier = self.jobs.get(job_id)
            if earlier is not None and earlier.registered_at is not None:
                job = job._replace(registered_at=earlier.registered_at)
            self.jobs[job_id] = job
        self.executions.update(later.executions)
        self.dead_letters.update(later.dead_letters)
        self.leaders.update(later.leaders)
        self.job_states.update(later.job_states)
        self.occurrence_states.update(later.occurrence_states)


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
