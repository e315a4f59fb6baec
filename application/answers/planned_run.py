"""A run that a backfill orders, or would order."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run of a past fire time, due at ``due``.

    ``definition_version`` is the job's version whose definition it runs, ``None`` the present one;
    ``again`` says that the fire time has run before.
    """

    fire_time: datetime
    occurrence_id: UUID
    due: datetime
    definition_version: int | None
    again: bool

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
