"""Reading what is now: the states that commands, scanner and worker decide from.

Read without locks, so every answer may be old when it is used; the guards of a decision find out.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.domain.job import JobState
from horolog.domain.lanes import QueueLimit
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.record import record


@record
class DueJob:
    """A job whose next fire is in the index at ``due_at``, and how many of its runs are unfinished
    (counted only where its overlap policy asks); ``queue_limit`` is its queue's, if it has one."""

    job: JobState
    due_at: datetime
    unfinished: int
    queue_limit: QueueLimit | None = None


@record
class DueOccurrence:
    """An unfinished occurrence in the index, with the job as it now is; one that was ordered with
    an earlier definition of the job has the job with that definition.

    ``position`` is the log's position of the append that wrote the row. ``lost``: an attempt
    of it was lost, so nobody can say whether it took effect; ``replayed``: a person has ordered it
    again since. ``since`` is when its first attempt was claimed, or that after its last
    replay; known where the job has ``retry.max_elapsed``.
    """

    job: JobState
    occurrence: OccurrenceState
    due_at: datetime
    position: int
    lost: bool = False
    replayed: bool = False
    since: datetime | None = None
    queue_limit: QueueLimit | None = None


class ReadsStates(Protocol):
    """Errors: ``StoreUnavailable``. What does not exist is ``None`` or missing from the answer."""

    def job(self, job_id: UUID) -> JobState | None: ...

    def job_by_key(self, key: str) -> JobState | None: ...

    def jobs(self, ids: Sequence[UUID]) -> dict[UUID, JobState]:
        """Those of ``ids`` (at most some thousands) that exist, in one query."""
        ...

    def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        """An occurrence from its own events, finished or not; ``None`` where it has none, and it
        was not ordered either."""
        ...

    def unfinished(
        self, job_id: UUID, *, after: UUID | None = None, limit: int = 1000
    ) -> list[OccurrenceState]:
        """The job's unfinished occurrences with an id above ``after``, in the order of ids."""
        ...


class ReadsDue(Protocol):
    """Errors: ``StoreUnavailable``."""

    def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        """The index rows ``ids`` as they are now, with their jobs; those gone are left out."""
        ...
