"""Letting time pass: from one thing that is due to the next, and never past one."""

from datetime import datetime

from horolog.application.simulation.leading import Leading
from horolog.application.simulation.performing import Performing

MOST_ROUNDS = 100_000
"""Rounds of claims at one instant: more would be a schedule or a handler that never lets it end."""


class Passing:
    """The clock of a simulation, with the leader and the worker that live by it."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def connect(self, leading: Leading, performing: Performing) -> None:
        """Who acts when time passes."""
        self._leading = leading
        self._performing = performing

    def run_due(self) -> int:
        """Does all that is due now; how many runs began."""
        began = 0
        for _ in range(MOST_ROUNDS):
            finished = self._performing.finish(self._now)
            moved, runs = self._leading.claim(self._now)
            began += sum(self._performing.begin(ready) for ready in runs)
            if not (moved or finished):
                return began
        raise RuntimeError(f"there is no end of what is due at {self._now.isoformat()}")

    def advance(self, to: datetime) -> int:
        """Goes through all that becomes due until ``to``, each at its time; how many runs began."""
        began = self.run_due()
        while (moment := self._next()) is not None and moment <= to:
            self._now = moment
            began += self.run_due()
        self._now = max(self._now, to)
        return began

    def skip(self, to: datetime) -> None:
        """Time passes and nobody acts; runs that had begun end all the same."""
        self._leading.leave(self._now)
        while (end := self._performing.next_end()) is not None and end <= to:
            self._now = end
            self._performing.finish(end)
        self._now = max(self._now, to)

    def _next(self) -> datetime | None:
        moments = (self._leading.next_claim(self._now), self._performing.next_end())
        return min((moment for moment in moments if moment is not None), default=None)
