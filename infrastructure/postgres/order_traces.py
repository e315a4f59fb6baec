"""What ordered a run, as the log has it: a trigger's event, or else the job's registration."""

from collections.abc import Mapping
from uuid import UUID

from horolog.application.tracing import Ordered
from horolog.infrastructure.postgres.arrays import Texts, Uuids
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.threaded import DedicatedThread

# job_events_ordered for triggers, the primary key of job_events for registrations.
_ORDERS = """
    SELECT w.id, d.said ->> 'traceparent',
           w.kind = 'trigger' OR d.said -> 'definition' -> 'schedule' ->> 'kind' = 'once'
    FROM unnest(%b, %b, %b) AS w (id, job, kind)
    CROSS JOIN LATERAL (
        SELECT :schema.decoded(e.state) AS said FROM :schema.job_events e
        WHERE w.kind = 'trigger' AND e.topic = 'job.triggered.1'
          AND (:schema.decoded(e.state) ->> 'occurrence_id') COLLATE "C" = w.id::text
        UNION ALL
        SELECT :schema.decoded(e.state) FROM :schema.job_events e
        WHERE w.kind <> 'trigger' AND e.stream = w.job AND e.version = 1
        LIMIT 1) d
    WHERE d.said ->> 'traceparent' IS NOT NULL
"""


class PostgresOrderTraces:
    """As :class:`horolog.application.tracing.FindsOrders` promises."""

    def __init__(self, database: Database, thread: DedicatedThread) -> None:
        self._database = database
        self._thread = thread
        self._orders = database.sql(_ORDERS)

    async def orders(self, runs: Mapping[UUID, tuple[UUID, str]]) -> dict[UUID, Ordered]:
        arrays = (
            Uuids(list(runs)),
            Uuids([job for job, _ in runs.values()]),
            Texts([kind for _, kind in runs.values()]),
        )
        rows = await self._thread.call(self._database.query, self._orders, arrays)
        return {run: Ordered(traceparent, alone) for run, traceparent, alone in rows}
