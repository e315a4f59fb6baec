"""A run, as the audit shows it: an occurrence and its job, when it began, by whom, how it went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.domain.ids import OccurrenceKind
from horolog.domain.occurrence import Phase


@dataclass(frozen=True, slots=True)
class Execution:
    """One occurrence, finished or not, with what its events say of its run.

    ``key``, ``name``, ``queue``, ``owner`` and ``labels`` are the job's as it is now. ``due_at`` is
    when it was meant to begin: its fire time, or later by its jitter or its order's pace.
    ``claimed_at`` and ``began_at`` are the first claim and the first attempt, ``late_s`` the
    seconds from ``due_at`` to that attempt. ``worker`` made the last attempt, ``seconds`` is how
    long that took; ``failure`` is the class of the last failure of any attempt, also where a later
    one succeeded.
    """

    id: UUID
    job_id: UUID
    key: str | None
    name: str
    queue: str
    owner: str | None
    labels: Mapping[str, str] = field(hash=False)
    state: Phase
    kind: OccurrenceKind
    fire_time: datetime
    due_at: datetime
    claimed_at: datetime | None
    began_at: datetime | None
    finished_at: datetime | None
    attempt: int
    failures: int
    worker: str | None
    seconds: float | None
    failure: str | None
    error: str | None
    archive: str | None = None
    """The file of the archive that it was read from; ``None`` for what is in the log."""

    @property
    def late_s(self) -> float | None:
        if self.began_at is None:
            return None
        return (self.began_at - self.due_at).total_seconds()

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {**plain(self), "late_s": self.late_s}
