"""What a rebuild works on: the log in windows, and a second set of the read models' tables.

The set lies beside the tables in use and is filled from the log; whoever uses the read models sees
nothing of it until the two are exchanged.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from horolog.domain.log_events import EventSkipped, OccurrencesPruned
from horolog.projections.changes import Changes, KnowsBefore, LogRow

Purpose = Literal["rebuild", "verify"]
State = Literal["folding", "stopped", "kept", "exchanged", "rolled_back", "dropped"]
"""``kept``: verify found differences, and a rebuild can go on from its tables. ``exchanged``: the
tables that were in use before are kept for a rollback."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what the log says. ``in_use`` and ``rebuilt`` hold the columns that differ,
    all of them where the other side has no such row and is ``None``."""

    projection: str
    id: str
    in_use: dict[str, Any] | None
    rebuilt: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a rebuild; ``position`` is how far the log was folded."""

    id: int
    purpose: Purpose
    projections: tuple[str, ...]
    fold_version: int
    state: State
    position: int
    events: int
    differences: int | None
    error: str | None
    actor: str
    reason: str | None
    started_at: datetime
    moved_at: datetime


class Window(NamedTuple):
    """Events that follow each other in the log, ``events`` of them, up to ``position``; ``more``:
    there were others behind them. ``rows`` lack those that change nothing of what is folded."""

    rows: Sequence[LogRow]
    events: int
    position: int
    more: bool


class Shadow(KnowsBefore, Protocol):
    """The second set of tables, at ``run.position`` of the log; the caller alone writes it.

    Errors: ``StoreUnavailable``, after which the set is as it was at its position.
    """

    run: Run
    longest_hold_s: float
    """The longest time for which the log lock was held so far."""

    def window(self, after: int, limit: int) -> Window:
        """The next events after ``after``: about ``limit``, whole appends."""
        ...

    def end(self) -> int:
        """The position of the log's last event."""
        ...

    def write(self, changes: Changes) -> None:
        """Applies the changes and moves the position to theirs, in one transaction."""
        ...

    def finish(self) -> None:
        """Makes the indexes that were left out while the tables were filled."""
        ...

    def compare(self, last: Callable[[], bool]) -> Iterable[Difference] | None:
        """Calls ``last`` under the log lock, and compares both sets in one snapshot of then.

        ``None`` where ``last`` answers that more is left than may be done under the lock. What the
        index alone knows (a look that was put off) is no difference.
        """
        ...

    def exchange(self, last: Callable[[], bool]) -> bool:
        """Calls ``last`` under the log lock and exchanges both sets, in one transaction.

        ``False``, and nothing has happened, where ``last`` says so or the tables could not be
        locked within some milliseconds: try again. Leases and publishing marks go on.
        """
        ...

    def state(
        self, state: State, *, error: str | None = None, differences: int | None = None
    ) -> None:
        """Records how the run stands; ``dropped`` drops the tables."""
        ...


class Rebuilds(Protocol):
    """Errors: ``StoreUnavailable``; ``NotAllowed`` while another process rebuilds or prunes."""

    def begin(
        self, purpose: Purpose, projections: Sequence[str], *, actor: str, reason: str | None
    ) -> AbstractContextManager[Shadow]:
        """The set that an interrupted run of the same fold version has left, or an empty one."""
        ...

    def kept(self) -> AbstractContextManager[Shadow]:
        """The tables that the last exchange took out of use; ``NotAllowed`` where there are none.

        They are at the position of that exchange: folding goes on from there.
        """
        ...

    def runs(self, limit: int) -> Sequence[Run]:
        """The last of them, the newest first."""
        ...

    def pruned(self) -> Sequence[tuple[int, OccurrencesPruned]]:
        """Every account of pruned occurrences, with its position."""
        ...

    def skipped(self) -> Sequence[EventSkipped]:
        """Every event that projections are to pass over."""
        ...

    def event_at(self, position: int) -> tuple[UUID, int, str] | None:
        """Stream, version and topic of the event at a position; ``None`` where there is none."""
        ...
