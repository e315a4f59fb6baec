"""A change of a job, as a client sees it: who changed what, from what to what, when and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field, before and after; ``None`` where it was or is absent.

    ``field`` is a path: "status", "schedule.seconds", "payload.amount", "retry.max_attempts".
    """

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field}: {self.before!r} → {self.after!r}"


@dataclass(frozen=True, slots=True)
class Change:
    """An event that changed a job.

    ``what`` is the event in one word ("registered", "rescheduled", "paused", …), ``version`` its
    place among the job's events, ``position`` its place in the log, ``at`` the database's clock.
    ``correlation`` joins the changes of one command. ``fields`` says what is different since.
    """

    job_id: UUID
    version: int
    position: int
    at: datetime
    what: str
    actor: str
    reason: str | None
    correlation: UUID
    causation: str | None
    fields: tuple[FieldChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
