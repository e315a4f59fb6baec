"""Missed deadlines: of the jobs that have any, what is unfinished, ended late, or has no
success."""

from datetime import datetime

from horolog.application.scanner.watching import Miss
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.threaded import DedicatedThread

_MISSED = "SELECT * FROM :schema.deadlines_missed(%s, %s)"


class PostgresDeadlines:
    """As :class:`horolog.application.scanner.watching.ReadsMisses` promises."""

    def __init__(self, database: Database, thread: DedicatedThread) -> None:
        self._database = database
        self._thread = thread
        self._missed = database.sql(_MISSED)

    async def missed(self, after: datetime, limit: int) -> list[Miss]:
        rows = await self._thread.call(self._database.query, self._missed, (after, limit))
        return [Miss(*row) for row in rows]
