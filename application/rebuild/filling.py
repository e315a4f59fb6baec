"""Filling the second set of tables: window by window after the log, until it is nearly there."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from horolog.application.rebuild.pending import Pending
from horolog.application.rebuild.ports import Rebuilds, Shadow, Window
from horolog.application.rebuild.progress import Pace
from horolog.domain.errors import ProjectionStopped
from horolog.projections.changes import Changes
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
                window = self._shadow.window(self._pending.changes.position, self._window)
                self._fold(window)
                more = window.more
            self._write()

    def last(self) -> bool:
        """The rest, under the log lock; ``False`` and nothing is done where it is too much."""
        window = self._shadow.window(self._pending.changes.position, LAST_WINDOW)
        if window.more:
            return False
        if window.events:
            self._pending.add(self._changes(window))
            self.pace.events += window.events
            self._write()
        return True

    def _fold(self, window: Window) -> None:
        if not window.events:
            return
        try:
            changes = self._changes(window)
        except ProjectionStopped as error:
            self._fold_before(error.position)
            self._write()
            raise
        events = changes.events
        self._pending.add(changes)
        if self._pending.full:
            self._write()
        self.pace.moved(changes.position, self._shadow.end(), events)

    def _fold_before(self, position: int) -> None:
        """Folds up to the append that holds the event at ``position``, as far as whole windows of
        the half, the quarter, … of the size go; what is left is done again by the next run."""
        size = self._window // 2
        while size:
            window = self._shadow.window(self._pending.changes.position, size)
            fits = window.events > 0 and window.position < position
            try:
                changes = self._changes(window) if fits else None
            except ProjectionStopped:  # at an event that a longer window leaves out
                changes = None
            if changes is None:
                size //= 2
            else:
                self._pending.add(changes)

    def _changes(self, window: Window) -> Changes:
        changes = fold_window(
            window.rows,
            self._pending.changes.position,
            self._pending,
            wanted=self._wanted,
            pruned=self._pruned,
            skipped=self._skipped,
            until=window.position,
        )
        changes.events = window.events
        return changes

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
