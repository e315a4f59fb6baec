"""Missed deadlines: of the jobs that have any, what is unfinished, ended late, or has no
success."""

from collections.abc import Sequence
from datetime import datetime

from horolog.application.scanner.watching import Miss, whole
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.threaded import DedicatedThread

_MISSED = "SELECT * FROM :schema.deadlines_missed(%s, %s)"


class PostgresDeadlines:
    """As :class:`horolog.application.scanner.watching.ReadsMisses` promises."""

    def __init__(self, database: Database, thread: DedicatedThread) -> None:
        self._database = database
        self._thread = thread
        self._missed = database.sql(_MISSED)

    async def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        most = limit + 1
        while True:
            rows = await self._thread.call(self._database.query, self._missed, (after, most))
            found = [Miss(*row) for row in rows]
            if len(found) < most or found[-1].due > found[limit - 1].due:
                return whole(found, limit)
            most *= 2  # there are more of the last one's instant
