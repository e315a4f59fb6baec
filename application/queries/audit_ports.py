"""What the audit asks of the log and its read models: bounded, in the order of keys.

Errors: ``StoreUnavailable``; ``UnreadableEvent``, which names the event.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.answers.execution import Execution
from horolog.application.answers.skip import Skip
from horolog.application.log import Recorded
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job_events import SkipCause
from horolog.domain.occurrence import Phase


@dataclass(frozen=True, slots=True)
class JobChoice:
    """Which jobs, as they are now; ``None`` is any. ``label`` is a name and a value, or a name."""

    job_id: UUID | None = None
    name: str | None = None
    queue: str | None = None
    owner: str | None = None
    label: tuple[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class ExecutionChoice:
    """Which runs; ``None`` is any.

    Fire times from ``since`` on and before ``until``; with ``by_end`` these speak of the instant at
    which the run ended, and only finished ones are chosen. Without a ``state`` those are left out
    that did not run: skipped ones, and ordered ones that nobody has claimed. ``worker`` and
    ``failure`` choose runs of which any attempt was made by that worker, or failed in that class.
    """

    jobs: JobChoice = JobChoice()
    since: datetime | None = None
    until: datetime | None = None
    by_end: bool = False
    state: Phase | None = None
    kind: OccurrenceKind | None = None
    failure: str | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class SkipChoice:
    """Which of what did not run: with a fire time from ``since`` on and before ``until``."""

    jobs: JobChoice = JobChoice()
    since: datetime | None = None
    until: datetime | None = None
    cause: SkipCause | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """A finished occurrence in figures: seconds of its last attempt, and from when it was meant to
    begin to its first attempt; ``None`` where it was never attempted."""

    job_id: UUID
    name: str
    fire_time: datetime
    state: Phase
    attempted: bool
    failures: int
    seconds: float | None
    late_s: float | None


class ReadsStreams(Protocol):
    """Parts of one stream."""

    def of_topics(
        self, stream: UUID, topics: Sequence[str], *, after: int = 0, limit: int = 1000
    ) -> list[Recorded]:
        """Events of a stream with one of ``topics`` and a version above ``after``, by version."""
        ...

    def order_of(self, occurrence_id: UUID) -> Recorded | None:
        """The ``Triggered`` event that ordered this occurrence, if one did."""
        ...

    def backfills_over(self, instant: datetime, *, after: int, limit: int) -> list[Recorded]:
        """``BackfillRequested`` events of any job with a position above ``after``, in the total
        order, whose range is not all before ``instant``, or all of it a millisecond later. Goes
        through all events of jobs: for what is asked once in a while."""
        ...


class ListsExecutions(Protocol):
    def executions(
        self, wanted: ExecutionChoice, *, after: UUID | None, limit: int
    ) -> list[Execution]:
        """In the order of fire times, or of ends where the choice speaks of those. ``after`` is an
        occurrence of the same choice. One statement looks at a bounded number of rows."""
        ...

    def timings(self, wanted: ExecutionChoice) -> Iterator[Timing]:
        """Finished occurrences, skipped ones too, in the order of fire times, piece by piece."""
        ...


class ListsSkips(Protocol):
    def skips(self, wanted: SkipChoice, *, after: UUID | None, limit: int) -> list[Skip]:
        """In the order of their last fire times."""
        ...


class Audits(ReadsStreams, ListsExecutions, ListsSkips, Protocol):
    """All of it."""
