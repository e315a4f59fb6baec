"""Parts of one stream: the events of some topics, the order of a run."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from horolog.application.log import Recorded
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.recorded import COLUMNS, recorded

# The primary keys of both tables; a stream is in one of them.
_OF_TOPICS = f"""
    SELECT {COLUMNS} FROM :schema.job_events
    WHERE stream = %(stream)s AND version > %(after)s AND topic = ANY (%(topics)s)
    UNION ALL
    SELECT {COLUMNS} FROM :schema.occurrence_events
    WHERE stream = %(stream)s AND version > %(after)s AND topic = ANY (%(topics)s)
    ORDER BY version LIMIT %(limit)s
"""
# job_events_ordered.
_ORDER_OF = f"""
    SELECT {COLUMNS} FROM :schema.job_events
    WHERE topic = 'job.triggered.1'
      AND (:schema.decoded(state) ->> 'occurrence_id') COLLATE "C" = %s::text
    ORDER BY position LIMIT 1
"""
# Through the whole table.
_BACKFILLS_OVER = f"""
    SELECT {COLUMNS} FROM :schema.job_events
    WHERE topic = 'job.backfill_requested.1' AND position > %(after)s
      AND (:schema.decoded(state) ->> 'start')::timestamptz < %(until)s
      AND (:schema.decoded(state) ->> 'end')::timestamptz >= %(since)s
    ORDER BY position LIMIT %(limit)s
"""


class PostgresStreams:
    """As :class:`horolog.application.queries.audit_ports.ReadsStreams` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._of_topics = database.sql(_OF_TOPICS)
        self._order_of = database.sql(_ORDER_OF)
        self._backfills_over = database.sql(_BACKFILLS_OVER)

    def of_topics(
        self, stream: UUID, topics: Sequence[str], *, after: int = 0, limit: int = 1000
    ) -> list[Recorded]:
        params = {"stream": stream, "topics": list(topics), "after": after, "limit": limit}
        return [recorded(row) for row in self._database.query(self._of_topics, params)]

    def order_of(self, occurrence_id: UUID) -> Recorded | None:
        rows = self._database.query(self._order_of, (str(occurrence_id),))
        return recorded(rows[0]) if rows else None

    def backfills_over(self, instant: datetime, *, after: int, limit: int) -> list[Recorded]:
        until = instant + timedelta(milliseconds=1)
        params = {"since": instant, "until": until, "after": after, "limit": limit}
        return [recorded(row) for row in self._database.query(self._backfills_over, params)]
