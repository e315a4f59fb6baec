"""Reading ahead: rows are read a moment before they are due, and decided on when they are.

How long a read takes is learned from the last ones. What was read too early is waited for: nothing
is decided before its time. A row that changed in that moment is refused by the log, as one that
changes between any read and its append.
"""

import asyncio

from horolog.application.scanner.clock import Clock, DatabaseTime

MOST_US = 3_000
"""The furthest ahead that rows are read: a slow database is no reason to read rows that may still
change."""

LEAST_US = 50
"""What is waited for at once: less is next to nothing, and no timer keeps it."""

_WEIGHT = 8
"""The last so many reads make up what is expected of the next."""


class ReadingAhead:
    """Begins with no lead, and takes as much as reads turn out to need."""

    def __init__(self, clock: Clock, time: DatabaseTime) -> None:
        self._clock = clock
        self._time = time
        self._lead_us = 0.0
        self._never = asyncio.Event()

    @property
    def lead_us(self) -> int:
        """How long before it is due a row is to be drawn."""
        return int(self._lead_us)

    def took(self, seconds: float) -> None:
        """A read has taken so long."""
        self._lead_us += (min(seconds * 1e6, MOST_US) - self._lead_us) / _WEIGHT

    async def until(self, due_us: int) -> None:
        """Returns when this is due, by the database's clock; never much later."""
        while (left_us := due_us - (now_us := self._time.now_us())) > 0:
            await self._clock.wait(self._never, max(left_us, LEAST_US) / 1e6)
            if self._time.now_us() <= now_us:
                return  # a clock that stands still
