"""Filling the second set of tables: window by window after the log, until it is nearly there."""

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from horolog.application.rebuild.pending import Pending
from horolog.application.rebuild.ports import Rebuilds, Shadow
from horolog.application.rebuild.progress import Pace
from horolog.domain.errors import ProjectionStopped
from horolog.projections.changes import Changes, LogRow
from horolog.projections.fold import fold_window
from horolog.projections.pruned import Pruned

WINDOW: Final = 30_000
"""Events folded at a time. More: fewer rows that are written only to go again; fewer: less memory,
and less work lost by a kill."""

LAST_WINDOW: Final = 500
"""The most events that are folded under the log lock, some milliseconds of work."""


class Filling:
    """Folds the log into a shadow. What was pruned, and what is to be passed over, is read once:
    nobody prunes while somebody rebuilds."""

    def __init__(
        self, rebuilds: Rebuilds, shadow: Shadow, pace: Pace, window: int = WINDOW
    ) -> None:
        self.pace = pace
        self._shadow = shadow
        self._window = window
        self._wanted = frozenset(shadow.run.projections)
        self._pruned = Pruned(rebuilds.pruned())
        self._skipped = {event.position: event.stream for event in rebuilds.skipped()}
        self._pending = Pending(shadow, shadow.run.position)

    def fill(self) -> None:
        """Returns when everything that was there a moment ago is folded and written.

        Raises ``ProjectionStopped`` at an event that cannot be applied; what is before it is
        written, and a later run goes on there.
        """
        if self._shadow.run.position != self._pending.changes.position:
            self._pending.taken_back(self._shadow.run.position)
        with _no_collector():
            more = True
            while more:
                rows, more = self._shadow.window(self._pending.changes.position, self._window)
                self._fold(rows)
            self._write()

    def last(self) -> bool:
        """The rest, under the log lock; ``False`` and nothing is done where it is too much."""
        rows, more = self._shadow.window(self._pending.changes.position, LAST_WINDOW)
        if more:
            return False
        if rows:
            self._pending.add(self._changes(rows))
            self.pace.events += len(rows)
            self._write()
        return True

    def _fold(self, rows: Sequence[LogRow]) -> None:
        if not rows:
            return
        try:
            changes = self._changes(rows)
        except ProjectionStopped as error:
            good = [row for row in rows if row[0] < error.position]
            if good:
                self._pending.add(self._changes(good))
            self._write()
            raise
        events = changes.events
        self._pending.add(changes)
        if self._pending.full:
            self._write()
        self.pace.moved(changes.position, self._shadow.end(), events)

    def _changes(self, rows: Sequence[LogRow]) -> Changes:
        return fold_window(
            rows,
            self._pending.changes.position,
            self._pending,
            wanted=self._wanted,
            pruned=self._pruned,
            skipped=self._skipped,
        )

    def _write(self) -> None:
        if self._pending.changes.events:
            self._shadow.write(self._pending.changes)
            self._pending.written()


@contextmanager
def _no_collector() -> Generator[None]:
    """Without the collector of cycles, which halves the speed: it looks at all that is held again
    and again, hundreds of thousands of rows, and none of them is part of a cycle."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
