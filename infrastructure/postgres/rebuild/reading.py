"""The log in windows of whole appends, with the next window on its way while one is folded."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from psycopg import sql

from horolog.application.rebuild.ports import Window
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.projections.changes import LogRow

_COLUMNS = "position, recorded_at, stream, version, topic, state"

# The position indexes of both tables, merged; each branch stops after `limit` rows.
_WINDOW = f"""
    SELECT {_COLUMNS} FROM (
        (SELECT {_COLUMNS} FROM :schema.job_events
         WHERE position > %(after)s ORDER BY position LIMIT %(limit)s)
        UNION ALL
        (SELECT {_COLUMNS} FROM :schema.occurrence_events
         WHERE position > %(after)s ORDER BY position LIMIT %(limit)s)
    ) AS both_tables ORDER BY position LIMIT %(limit)s
"""


class _Ahead(NamedTuple):
    after: int
    limit: int
    rows: "Future[list[LogRow]]"


class LogWindows:
    """Reads on a connection of its own, in a thread of its own.

    Positions become visible in their order, so no window passes over an event that commits late.
    """

    def __init__(self, database: Database, connection: Connection) -> None:
        self._connection = connection
        self._window: sql.Composed = database.sql(_WINDOW)
        self._thread = ThreadPoolExecutor(1, "rebuild-reads")
        self._ahead: _Ahead | None = None

    def after(self, position: int, limit: int) -> Window:
        """The next events, at most ``limit`` unless one append has more; it is never cut."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and (ahead.after, ahead.limit) == (position, limit):
            rows = ahead.rows.result()
        else:
            if ahead is not None:
                ahead.rows.cancel()
            rows = self._read(position, limit)
        size = limit
        while len(rows) >= size:
            if whole := _whole_appends(rows):
                following = self._thread.submit(self._select, whole[-1][0], limit)
                self._ahead = _Ahead(whole[-1][0], limit, following)
                return Window(whole, more=True)
            size *= 2
            rows = self._read(position, size)
        return Window(rows, more=False)

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _read(self, position: int, limit: int) -> list[LogRow]:
        return self._thread.submit(self._select, position, limit).result()

    def _select(self, position: int, limit: int) -> list[LogRow]:
        params = {"after": position, "limit": limit}
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(self._window, params)
            return cursor.fetchall()  # pyright: ignore[reportReturnType]


def _whole_appends(rows: list[LogRow]) -> list[LogRow]:
    """All but the last append, which may go on behind what was read.

    The events of one append, and no others, were recorded at the same instant.
    """
    last = rows[-1][1]
    end = len(rows)
    while end and rows[end - 1][1] == last:
        end -= 1
    return rows[:end]
