"""Time as the scanner knows it: the database's, carried on by a monotonic clock.

Every instance goes by the database's clock, so that they agree. It is read with each renewal and
carried on by a clock that no one sets: a step of the local wall clock (NTP, an operator, a resumed
machine) changes nothing at all. The estimate is never early: it assumes that the whole round trip
was spent on the way back, so no occurrence is claimed before its time.
"""

import asyncio
from datetime import datetime, timedelta
from math import ceil
from typing import Protocol

from horolog.domain.ids import EPOCH

MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """What passes here, whatever the time may be elsewhere."""

    def monotonic(self) -> float:
        """Seconds since some start; grows steadily and is never set."""
        ...

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Returns when the event is set or the time is over, whichever comes first."""
        ...


class DatabaseTime:
    """The database's time in microseconds since 1970, estimated between two readings of it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_us: float | None = None
        self._most_us = 0.0

    @property
    def known(self) -> bool:
        """Whether the database was read at all."""
        return self._offset_us is not None

    def observe(self, sent: float, received: float, database_us: int) -> float:
        """Takes in a reading that the database made between ``sent`` and ``received`` (monotonic).

        Returns by how many seconds the estimate was moved: more than a moment means that a clock
        was stepped, theirs or ours.
        """
        low, high = database_us - received * 1e6, database_us - sent * 1e6
        before = self._offset_us
        if before is None or not low <= self._most_us <= high:
            self._most_us = high
        if before is not None and low <= before <= high:
            return 0.0
        self._offset_us = low
        return 0.0 if before is None else (low - before) / 1e6

    def now_us(self) -> int:
        """Now, by the database's clock, or a moment before."""
        assert self._offset_us is not None, "the database's clock was not read yet"
        return int(self._offset_us + self._clock.monotonic() * 1e6)

    def now(self) -> datetime:
        """The same as a datetime in UTC."""
        return instant(self.now_us())

    def now_at_most(self) -> datetime:
        """Now, by the database's clock, or a moment after: for what must not come too soon."""
        assert self.known, "the database's clock was not read yet"
        return instant(ceil(self._most_us + self._clock.monotonic() * 1e6))


def instant(microseconds: int) -> datetime:
    """The datetime of a number of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds(moment: datetime) -> int:
    """The number of microseconds since 1970 of a datetime."""
    return (moment - EPOCH) // MICROSECOND
