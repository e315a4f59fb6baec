"""The database's clock, and this process's distance from it.

Decisions are made by one time, the database's. Asking for it at every registration would double the
round trips, so an answer is carried on by a clock that only runs forward, for ``fresh_s`` seconds.
Longer saves questions; shorter follows a step of the server's clock sooner.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock

from horolog.infrastructure.postgres.database import Database

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)

elapsed_s: Callable[[], float] = (
    time.monotonic if _BOOT_TIME is None else partial(time.clock_gettime, _BOOT_TIME)
)
"""Seconds on a clock that never steps and, where there is one, also counts a suspension."""


class PostgresClock:
    """As :class:`horolog.application.commands.context.Clock` promises; shared by threads."""

    def __init__(
        self,
        database: Database,
        *,
        fresh_s: float = 1.0,
        elapsed: Callable[[], float] = elapsed_s,
    ) -> None:
        self._database = database
        self._fresh_s = fresh_s
        self._elapsed = elapsed
        self._statement = database.sql("SELECT clock_timestamp()")
        self._lock = Lock()
        self._asked: tuple[float, datetime] | None = None

    def now(self) -> datetime:
        with self._lock:
            if self._asked is None or self._elapsed() - self._asked[0] > self._fresh_s:
                # The answer was true before it came back, so this clock is never ahead.
                answer = self._database.query(self._statement)[0][0]
                self._asked = (self._elapsed(), answer.astimezone(UTC))
            at, answer = self._asked
            return answer + timedelta(seconds=self._elapsed() - at)
