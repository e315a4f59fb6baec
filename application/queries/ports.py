"""What the queries ask of the read models: bounded by ``limit``, in the order of ids.

Errors: ``StoreUnavailable``; ``UnreadableEvent``, which names the event.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.answers.dead_letter import DeadLetter
from horolog.application.answers.index_entry import IndexEntry
from horolog.application.answers.occurrence import Occurrence
from horolog.domain.job import JobState, JobStatus
from horolog.domain.occurrence import Phase


@dataclass(frozen=True, slots=True)
class JobFilter:
    """``None`` is any. ``label`` is a name and a value, or a name alone."""

    status: JobStatus | None = None
    name: str | None = None
    label: tuple[str, str | None] | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class OccurrenceFilter:
    """``None`` is any. Fire times from ``since`` on and before ``until``."""

    job_id: UUID | None = None
    state: Phase | None = None
    since: datetime | None = None
    until: datetime | None = None


class ListsJobs(Protocol):
    def jobs(self, wanted: JobFilter, *, after: UUID | None, limit: int) -> list[JobState]: ...


class ListsOccurrences(Protocol):
    def occurrence(self, occurrence_id: UUID) -> Occurrence | None: ...

    def occurrences(
        self,
        wanted: OccurrenceFilter,
        *,
        after: UUID | None,
        limit: int,
        newest_first: bool = False,
    ) -> list[Occurrence]:
        """Unfinished and finished ones alike, by fire time; the newest first where asked for."""
        ...


class ListsDeadLetters(Protocol):
    def dead_letters(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> Sequence[DeadLetter]: ...


class ListsDueNext(Protocol):
    def due_next(self, until: datetime, limit: int) -> Sequence[IndexEntry]:
        """The first ``limit`` fires (of schedules, retries and orders) due before ``until``, by due
        time; what waits for a slot of a full lane is left out."""
        ...


class WaitsForEvents(Protocol):
    def wait(self, timeout_s: float) -> None:
        """Returns when something was appended, or after ``timeout_s``, or early for no reason."""
        ...

    def close(self) -> None: ...
