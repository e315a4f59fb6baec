"""A row of the next-run index as it was at some instant: what needed attention, and when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A job's next fire (``kind`` "job", ``id`` the job's), or an unfinished occurrence.

    ``due_at`` is when it wanted attention: a fire, the next try, or the end of a claim's window or
    of an attempt's lease as the log states it; heartbeats move that without an event. ``name`` is
    the handler's. ``state`` is "active" for a job, else the occurrence's.
    """

    due_at: datetime
    id: UUID
    job_id: UUID
    name: str
    kind: str
    state: str
    fire_time: datetime
    attempt: int
    failures: int
    version: int
    partition: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
