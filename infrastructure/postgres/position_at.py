"""Where the log stood at an instant: found along the order of positions, for that is indexed.

Positions are drawn and stamped under one lock, so both grow together; a search that halves the
range takes some twenty steps in a log of millions, each a descent of the position indexes.
"""

from datetime import datetime

from horolog.infrastructure.postgres.database import Database

# job_events_position, and that of each part of occurrence_events.
_POSITION_AT = """
    WITH RECURSIVE search (low, high) AS (
        SELECT 0::bigint, CASE WHEN s.is_called THEN s.last_value ELSE 0 END
        FROM :schema.positions s
        UNION ALL
        SELECT CASE WHEN e.recorded_at <= %(moment)s THEN e.position ELSE s.low END,
               CASE WHEN e.recorded_at <= %(moment)s THEN s.high
                    ELSE (s.low + s.high + 1) / 2 - 1 END
        FROM search s LEFT JOIN LATERAL (
            SELECT * FROM (
                (SELECT position, recorded_at FROM :schema.job_events
                 WHERE position >= (s.low + s.high + 1) / 2 AND position <= s.high
                 ORDER BY position LIMIT 1)
                UNION ALL
                (SELECT position, recorded_at FROM :schema.occurrence_events
                 WHERE position >= (s.low + s.high + 1) / 2 AND position <= s.high
                 ORDER BY position LIMIT 1)
            ) either ORDER BY position LIMIT 1
        ) e ON true
        WHERE s.low < s.high
    )
    SELECT low FROM search WHERE low >= high LIMIT 1
"""


class PostgresPositions:
    """Answers where the log stood at an instant."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._statement = database.sql(_POSITION_AT)

    def position_at(self, moment: datetime) -> int:
        """As :class:`horolog.application.queries.past_ports.ReadsPastJobs` promises."""
        return self._database.query(self._statement, {"moment": moment})[0][0]
