"""What did not run, and why: a range of fire times that a policy dropped, or one skipped run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.domain.job_events import SkipCause


@dataclass(frozen=True, slots=True)
class Skip:
    """Fire times from ``first`` to ``last``, both included, that did not run; ``count`` of them.

    ``count`` is ``None`` where the range was too long to be counted. ``occurrence_id`` is the run's
    where one had been ordered or claimed before it was skipped. ``because`` says ``cause`` in
    words. ``id`` is for paging: it sorts by ``last``.
    """

    id: UUID
    job_id: UUID
    name: str
    cause: SkipCause
    because: str
    first: datetime
    last: datetime
    count: int | None
    occurrence_id: UUID | None
    recorded_at: datetime
    actor: str
    reason: str | None
    position: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
