"""The log in windows of whole appends, with the next window on its way while one is folded."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from psycopg import sql

from horolog.application.rebuild.ports import Window
from horolog.domain.event import topics
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.projections.changes import LogRow

_COLUMNS = "position, recorded_at, stream, version, topic, state"

# The position indexes of both tables, merged; each branch stops after `limit` rows.
_ROWS = f"""
    SELECT {_COLUMNS} FROM (
        (SELECT {_COLUMNS} FROM :schema.job_events
         WHERE position > %(after)s ORDER BY position LIMIT %(limit)s)
        UNION ALL
        (SELECT {_COLUMNS} FROM :schema.occurrence_events
         WHERE position > %(after)s ORDER BY position LIMIT %(limit)s)
    ) AS both_tables ORDER BY position LIMIT %(limit)s
"""
_WHOLE = f"SELECT {_COLUMNS}, 0 FROM ({_ROWS}) AS rows"
# The same without what leaves nothing: of an occurrence that was claimed and ended within the
# window the first claim alone, which moves its job on. The last row says how many events there
# were, and up to where. An append at the end that may go on behind the window is left out. A life
# with an event that may not be readable is not left out: the fold has to stop there.
_WHAT_STAYS = f"""
    WITH read AS MATERIALIZED ({_ROWS}),
    rows AS MATERIALIZED (
        SELECT *, max(position) OVER (PARTITION BY recorded_at) AS append_end FROM read
        WHERE position <= (
            SELECT CASE WHEN count(*) < %(limit)s THEN max(position) ELSE (
                SELECT r.position FROM read r WHERE r.recorded_at <> (
                    SELECT l.recorded_at FROM read l ORDER BY l.position DESC LIMIT 1)
                ORDER BY r.position DESC LIMIT 1) END
            FROM read)
    ),
    ended AS (
        SELECT stream FROM rows GROUP BY stream
        HAVING bool_or(version = 1 AND topic = 'occurrence.claimed.1')
           AND max(version) = max(version) FILTER (WHERE topic IN (
                   'occurrence.succeeded.1', 'occurrence.skipped.1', 'occurrence.discarded.1'))
           AND bool_and(topic = ANY (%(topics)s) AND {{whole}})
    )
    SELECT * FROM (
        SELECT r.position, r.recorded_at, r.stream,
               CASE WHEN o.stream IS NULL THEN r.version ELSE 0 END, r.topic, r.state, r.append_end
        FROM rows r LEFT JOIN ended o ON o.stream = r.stream
        WHERE o.stream IS NULL OR r.version = 1
        UNION ALL
        SELECT max(position), NULL, NULL, count(*)::integer, NULL, NULL,
               CASE WHEN (SELECT count(*) FROM read) < %(limit)s THEN -1 ELSE -2 END
        FROM rows
    ) AS stays ORDER BY append_end < 0, position
"""
_IS_JSON = "state IS JSON OBJECT"
"""Whether a state is a JSON document at all; before Postgres 16 only whether it ends as one."""
_ENDS_AS_JSON = """
    length(state) > 1 AND get_byte(state, 0) = 123 AND get_byte(state, length(state) - 1) = 125
"""
_IS_JSON_FROM = 160_000


class _Ahead(NamedTuple):
    after: int
    limit: int
    window: "Future[Window]"


class LogWindows:
    """Reads on a connection of its own, in a thread of its own.

    Positions become visible in their order, so no window passes over an event that commits late.
    ``whole``: every event; otherwise those of occurrences that began and ended within a window are
    left out, but for what they did to their jobs.
    """

    def __init__(self, database: Database, connection: Connection, *, whole: bool) -> None:
        self._connection = connection
        self._whole = whole
        is_json = connection.info.server_version >= _IS_JSON_FROM
        stays = _WHAT_STAYS.format(whole=_IS_JSON if is_json else _ENDS_AS_JSON)
        self._statement: sql.Composed = database.sql(_WHOLE if whole else stays)
        self._thread = ThreadPoolExecutor(1, "rebuild-reads")
        self._ahead: _Ahead | None = None

    def after(self, position: int, limit: int) -> Window:
        """The next events, at most ``limit`` unless one append has more; it is never cut."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and (ahead.after, ahead.limit) == (position, limit):
            window = ahead.window.result()
        else:
            if ahead is not None:
                ahead.window.cancel()
            window = self._read(position, limit)
        size = limit
        while window.more and not window.events:
            size *= 2
            window = self._read(position, size)
        if window.more:
            following = self._thread.submit(self._select, window.position, limit)
            self._ahead = _Ahead(window.position, limit, following)
        return window

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _read(self, position: int, limit: int) -> Window:
        return self._thread.submit(self._select, position, limit).result()

    def _select(self, position: int, limit: int) -> Window:
        params: dict[str, object] = {"after": position, "limit": limit}
        if not self._whole:
            params["topics"] = topics()
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(self._statement, params)
            rows: list[LogRow] = cursor.fetchall()  # pyright: ignore[reportAssignmentType]
        if self._whole:
            return _window_of(rows, position, more=len(rows) >= limit)
        last, _, _, events, _, _, full = rows.pop()
        return Window(rows, events, last or position, full < -1)


def _window_of(rows: list[LogRow], after: int, *, more: bool) -> Window:
    if more:
        rows = _whole_appends(rows)
    return Window(rows, len(rows), rows[-1][0] if rows else after, more)


def _whole_appends(rows: list[LogRow]) -> list[LogRow]:
    """All but the last append, which may go on behind what was read.

    The events of one append, and no others, were recorded at the same instant.
    """
    last = rows[-1][1]
    end = len(rows)
    while end and rows[end - 1][1] == last:
        end -= 1
    return rows[:end]
