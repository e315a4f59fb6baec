"""The log as the loops and commands call it: append decisions, read events back.

Two processes may append at once; the adapter serialises them in one total order. After a failure
of the connection it is unknown whether an append happened: the adapter asks the log, by comparing
its own events, and answers as if nothing had been interrupted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol
from uuid import UUID

from horolog.application.decision import Decision
from horolog.domain import (
    alert_events,
    job_events,
    log_events,
    occurrence_events,
    partition,
    subject_events,
)
from horolog.domain.event import Event

# A topic can be read once the module that declares its event is imported.
_DECLARING: Final = (
    alert_events,
    job_events,
    log_events,
    occurrence_events,
    partition,
    subject_events,
)

Verdict = Literal["accepted", "conflict", "stale", "full"]
"""``conflict``: the guard no longer held. ``stale``: a newer leader was elected. ``full``: a lane
of the decision has no slot free, or its rate is used up; in a batch, what comes first gets it."""


@dataclass(frozen=True, slots=True)
class Fences:
    """Who claims, and under which fencing token for each partition that it believes to lead."""

    instance: str
    tokens: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of each decision, in order; the log's position and time (UTC) after the batch."""

    verdicts: list[Verdict]
    position: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as the log holds it. ``position`` is its place in the total order."""

    position: int
    recorded_at: datetime
    stream: UUID
    version: int
    event: Event


class AppendsToLog(Protocol):
    """The write side.

    Guarantees: one transaction and one round trip for the whole batch; each decision is accepted or
    refused whole, by its guard and the fences; rows follow their events in the same transaction;
    a decision is never applied twice, also when the connection breaks around the commit; a lane
    never has more slots taken than the limit of whoever took the last. The row of what is refused
    as ``full`` leaves the fires of the index until a slot is free, or it is written anew.
    Errors: ``StoreUnavailable``, after which nothing of the batch is known to be written, and the
    same batch may be given again; ``OutOfRange`` where a decision holds a value that cannot be
    kept, after which nothing of the batch is written.
    """

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended: ...


class ReadsLog(Protocol):
    """The read side; bounded by ``limit``, oldest first.

    Errors: ``StoreUnavailable``; ``UnreadableEvent``, which names the event.
    """

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        """Events of one stream with a version above ``after``."""
        ...

    def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        """Events of all streams with a position above ``after``, in the total order."""
        ...
