"""What is due next, over all partitions, from the next-run index."""

from datetime import datetime

from horolog.application.answers.index_entry import IndexEntry
from horolog.infrastructure.postgres.database import Database

# next_runs_fires, the next stretch of each partition, merged; then the primary key of jobs.
_DUE_NEXT = """
    SELECT d.due_at, d.id, d.job_id, j.name, d.kind, d.state, d.fire_time, d.attempt, d.failures,
           d.version, d.partition
    FROM (SELECT r.* FROM :schema.partitions p CROSS JOIN LATERAL (
              SELECT n.due_at, n.id, n.job_id, n.kind, n.state, n.fire_time, n.attempt, n.failures,
                     n.version, n.partition
              FROM :schema.next_runs n
              WHERE n.partition = p.partition AND NOT n.look AND n.lane IS NULL
                AND n.due_at < %(until)s
              ORDER BY n.due_at, n.id LIMIT %(limit)s) r
          ORDER BY r.due_at, r.id LIMIT %(limit)s) d
    JOIN :schema.jobs j ON j.id = d.job_id
    ORDER BY d.due_at, d.id
"""


class PostgresDueNext:
    """As :class:`horolog.application.queries.ports.ListsDueNext` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._text = database.sql(_DUE_NEXT)

    def due_next(self, until: datetime, limit: int) -> list[IndexEntry]:
        rows = self._database.query(self._text, {"until": until, "limit": limit})
        return [IndexEntry(*row) for row in rows]
