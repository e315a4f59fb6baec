"""A dead letter, as a client sees it: what nobody will try again by themselves, and whose it is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead-lettered occurrence: ``id`` is the occurrence's, ``since`` when it died.

    ``cause`` is "exhausted" (no attempt left), "hopeless" (another try would fail the same way),
    "unknown_handler", "unknown_outcome" or "operator"; ``kind`` the class of the last failure;
    ``owner`` who has to look at it.
    """

    id: UUID
    job_id: UUID
    name: str
    owner: str | None
    cause: str
    kind: str | None
    error: str
    attempt: int
    fire_time: datetime
    since: datetime

    @property
    def occurrence_id(self) -> UUID:
        """``id`` by its long name: a dead letter is an occurrence."""
        return self.id

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
