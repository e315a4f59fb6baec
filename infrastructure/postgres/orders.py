"""What has been ordered already: the occurrence of a trigger's request, the occurrences of ids."""

from collections.abc import Sequence
from typing import cast
from uuid import UUID

from horolog.domain.event import read_event
from horolog.domain.job_events import Triggered
from horolog.infrastructure.postgres.arrays import Uuids
from horolog.infrastructure.postgres.database import Database

# job_events_requests.
_TRIGGERED = """
    SELECT e.version, e.topic, e.state FROM :schema.job_events e
    WHERE e.stream = %s AND e.topic = 'job.triggered.1'
      AND :schema.decoded(e.state) ->> 'request_id' = %s
    ORDER BY e.version LIMIT 1
"""
# The primary keys of the three tables.
_EXISTING = """
    SELECT w.id FROM unnest(%b) AS w (id)
    WHERE EXISTS (SELECT FROM :schema.next_runs r WHERE r.id = w.id)
       OR EXISTS (SELECT FROM :schema.executions x WHERE x.id = w.id)
       OR EXISTS (SELECT FROM :schema.occurrence_events e WHERE e.stream = w.id)
"""


class PostgresOrders:
    """As :class:`FindsTriggers` and :class:`FindsOccurrences` promise."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._triggered = database.sql(_TRIGGERED)
        self._existing = database.sql(_EXISTING)

    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:
        rows = self._database.query(self._triggered, (job_id, request_id))
        if not rows:
            return None
        version, topic, state = rows[0]
        event = read_event(topic, bytes(state), where=f"{job_id}:{version}")
        return cast("Triggered", event).occurrence_id

    def existing(self, ids: Sequence[UUID]) -> set[UUID]:
        return {identity for (identity,) in self._database.query(self._existing, (Uuids(ids),))}
