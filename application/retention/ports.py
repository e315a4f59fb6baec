"""What retention works on: the months of the log, and an archive."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.verify.hash_chain import Link, PrunedLink
from horolog.application.verify.ports import StoredEvent
from horolog.domain.log_events import OccurrencesPruned


@dataclass(frozen=True, slots=True)
class Month:
    """A month of occurrences, by their fire times: from ``since`` to before ``until``.

    ``occurrences``, ``events`` and ``executions`` are how many of them would leave. ``first`` and
    ``last`` are the positions of its events, 0 where it has none. ``hindrance`` says why it cannot
    be pruned now, where that is so; ``kept`` are its unresolved occurrences (not all of them where
    they are a hindrance).
    """

    since: datetime
    until: datetime
    occurrences: int
    events: int
    executions: int
    first: int
    last: int
    kept: tuple[UUID, ...] = ()
    hindrance: str | None = None
    rest: bool = False
    """No month, but all that is older than the oldest month that stays: what months that left have
    kept and is resolved by now, and runs of a backfill that reached back behind the first month."""

    @property
    def name(self) -> str:
        return "rest" if self.rest else f"{self.since:%Y-%m}"


@dataclass(frozen=True, slots=True)
class Archived:
    """A file of an archive, complete and on disk."""

    file: str
    sha256: str
    events: int


class Archive(Protocol):
    """Errors: ``InvalidSetting`` for a place that cannot be written to."""

    def write(self, name: str, events: Iterable[StoredEvent]) -> Archived:
        """Writes the events to a file of this name (its ending is the archive's own).

        It appears whole or not at all; a file of that name is replaced.
        """
        ...


@dataclass(frozen=True, slots=True)
class Farewell:
    """All that is known when a month leaves.

    ``account`` is what the log says, in order and in one correlation; nothing of a month that was
    empty. ``links`` is what is left of the links of the hash chain. ``until_position`` is how far
    the log was looked at: what is appended to the month after that stays.
    """

    month: Month
    account: Sequence[OccurrencesPruned]
    links: Sequence[PrunedLink]
    until_position: int


class Months(Protocol):
    """Errors: ``StoreUnavailable``."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else prunes or rebuilds within; ``NotAllowed`` where somebody does already."""
        ...

    def older_than(self, moment: datetime) -> Sequence[Month]:
        """The months whose whole range is before ``moment``, the oldest first, and the rest before
        them if anything of it can leave."""
        ...

    def page(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events of the whole log with a position above ``after``, in the total order."""
        ...

    def links(self, after: int, limit: int) -> Sequence[Link]:
        """Links of the hash chain with a last position above ``after``, in their order."""
        ...

    def say(self, events: Sequence[OccurrencesPruned]) -> None:
        """Appends to the stream of what is said about the log."""
        ...

    def drop(self, farewell: Farewell) -> bool:
        """Takes the month out of the log and the execution log and appends the last event of its
        account, in one transaction under the log lock; what is kept goes to the rest.

        ``False``, and nothing has happened, where the tables could not be locked within some
        milliseconds: try again. The disk space is freed afterwards.
        """
        ...

    def tidy(self) -> None:
        """Frees what an interrupted pruning has left, and tables that a rebuild kept: they still
        hold what was pruned."""
        ...
