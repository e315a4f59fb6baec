"""What time travel reads: the log up to a position, and where in it to look.

The read models of the present say only which streams are worth reading (which jobs there are, which
occurrences may have been unfinished); what was true is always folded from the events.

Errors: ``StoreUnavailable``; ``UnreadableEvent``, which names the event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from horolog.application.log import Recorded
from horolog.domain.ids import OccurrenceKind

LEAD: Final = timedelta(seconds=5)
"""No fire time is claimed before it has come, by the database's clock; this much is allowed for."""


class Move(NamedTuple):
    """What a claim of a fire time, or a dropped range of them, has made of a job's schedule: where
    it goes on, and how many fire times it has used up. ``position`` is the event's."""

    position: int
    fires: int
    next_fire: datetime | None


class StoredEvent(NamedTuple):
    """An event as it is stored: most of them need not be read whole."""

    position: int
    version: int
    topic: str
    state: bytes


class PastJob(NamedTuple):
    """A job's own events up to a position, by version, without those that leave its state as it is;
    ``version`` is the last one of all. Of the ranges that were dropped only the last is told, as
    ``dropped``: it says how far the schedule had come."""

    id: UUID
    version: int
    events: Sequence[StoredEvent]
    dropped: Move | None


@dataclass(frozen=True, slots=True)
class ClaimsSought:
    """The claims of a job's fire times from ``since`` on, at positions above ``after``."""

    job_id: UUID
    since: datetime
    after: int


@dataclass(frozen=True, slots=True)
class MaybeOpen:
    """An occurrence that may have been unfinished, and its events up to a position."""

    id: UUID
    job_id: UUID
    kind: OccurrenceKind
    events: Sequence[Recorded]


class ReadsPastJobs(Protocol):
    def position_at(self, moment: datetime) -> int:
        """The position of the last event that was recorded by then; 0 where there is none."""
        ...

    def job_ids(self, *, name: str | None, after: UUID | None, limit: int) -> list[UUID]:
        """The ids of jobs, of one handler where it is named, above ``after`` and in their order."""
        ...

    def jobs_at(
        self, ids: Sequence[UUID], position: int, *, active: bool = False
    ) -> Sequence[PastJob]:
        """Those of ``ids`` that had been registered by ``position``; with ``active``, without those
        whose own last event is their end or a pause."""
        ...

    def last_claims(
        self, sought: Sequence[ClaimsSought], moment: datetime, position: int
    ) -> Mapping[UUID, Move]:
        """For each job the claim that moved its schedule furthest, of those sought and up to
        ``position``, the last at ``moment``; jobs without one are left out."""
        ...


class ReadsPastOccurrences(Protocol):
    def maybe_open(self, moment: datetime, position: int) -> Sequence[MaybeOpen]:
        """At least all occurrences that were unfinished at ``position``, the last at ``moment``:
        claimed by then, or ordered."""
        ...

    def orders(self, occurrences: Mapping[UUID, UUID], position: int) -> Sequence[Recorded]:
        """The events up to ``position`` that ordered these occurrences (each with its job)."""
        ...


class ReadsPast(ReadsPastJobs, ReadsPastOccurrences, Protocol):
    """All of it."""
