"""What the checker reads: the log as it is stored, and one snapshot of the index.

Raw states and not events: an event that cannot be read is a finding, not the end of the check.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from horolog.application.verify.report import Place
from horolog.projections.pruned import Pruned


class StoredEvent(NamedTuple):
    """An event as it is stored; ``state`` is JSON."""

    position: int
    recorded_at: datetime
    stream: UUID
    version: int
    topic: str
    state: bytes


class ScannedEvent(NamedTuple):
    """An event as the check of the whole log reads it.

    ``stream`` is the bytes of its id: a ``UUID`` takes many times as long to be made, hashed and
    compared, and that is done several times for each event.
    """

    position: int
    recorded_at: datetime
    stream: bytes
    version: int
    topic: str
    state: bytes

    @property
    def place(self) -> Place:
        return Place(self.stream, self.version, self.position)

    def stored(self) -> StoredEvent:
        """As others read it."""
        return StoredEvent(
            self.position,
            self.recorded_at,
            UUID(bytes=self.stream),
            self.version,
            self.topic,
            self.state,
        )


class IndexedRow(NamedTuple):
    """A row of the next-run index, of a job (``kind`` "job") or of an unfinished occurrence."""

    id: UUID
    job_id: UUID
    kind: str
    state: str
    version: int
    attempt: int
    fire_time: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A job's own stream in short: its last version, how many events there are, and its status."""

    id: UUID
    version: int
    events: int
    active: bool


class Snapshot(Protocol):
    """The log's position and the index at one instant. Errors: ``StoreUnavailable``."""

    position: int

    def jobs(self) -> Iterator[LoggedJob]:
        """All jobs, from their own events alone, in the order of ids."""
        ...

    def indexed_jobs(self) -> Iterator[IndexedRow]:
        """The rows of jobs, in the order of ids."""
        ...

    def indexed_occurrences(self) -> Iterator[IndexedRow]:
        """The rows of occurrences, in any order."""
        ...

    def started(self, occurrences: Sequence[UUID]) -> set[UUID]:
        """Those of ``occurrences`` that have an event."""
        ...


class ScansLog(Protocol):
    """Errors: ``StoreUnavailable``."""

    def page(self, after: int, limit: int) -> Sequence[ScannedEvent]:
        """Events with a position above ``after``, in the total order."""
        ...

    def doubles(self, after: int, until: int) -> Sequence[ScannedEvent]:
        """Events with a position above ``after``, up to ``until``, that an earlier one of the same
        range has too."""
        ...

    def before(self, stream: bytes, position: int) -> Sequence[ScannedEvent]:
        """The events of one stream with a position below ``position``, by version."""
        ...

    def allowed_attempts(self, jobs: Sequence[bytes]) -> dict[bytes, int]:
        """The most attempts that any policy of a job ever allowed; unknown jobs are left out."""
        ...

    def schedules(self, job: bytes) -> Sequence[tuple[int, dict[str, Any]]]:
        """The schedules that a job has had, as JSON, with the versions that brought them."""
        ...

    def pruned(self) -> Pruned:
        """What the log says of the occurrences that left it."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]: ...
