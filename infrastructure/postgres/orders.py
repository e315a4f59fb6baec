"""What has been ordered already: the occurrence of a trigger's request, the occurrences of ids."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from horolog.domain.event import read_event
from horolog.domain.ids import fire_time_floor, log_stream
from horolog.domain.job_events import DEFINING, JobEvent, Triggered
from horolog.domain.occurrence import Phase
from horolog.infrastructure.postgres.arrays import Instants, Uuids
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
# executions_job and next_runs_unfinished: a range of ids is a range of fire times.
_OUTCOMES = """
    SELECT o.fire_time, o.state FROM (
        SELECT x.fire_time, x.state FROM :schema.executions x
        WHERE x.job_id = %(job)s AND x.id >= %(low)s AND x.id < %(high)s AND x.kind <> 'trigger'
        UNION ALL
        SELECT r.fire_time, r.state FROM :schema.next_runs r
        WHERE r.job_id = %(job)s AND r.id >= %(low)s AND r.id < %(high)s
          AND r.kind IN ('schedule', 'backfill')
    ) AS o JOIN unnest(%(fires)b) AS w (fire) ON w.fire = o.fire_time
"""
# The primary key of job_events.
_DEFINING = """
    SELECT e.version, e.recorded_at, e.topic, e.state FROM :schema.job_events e
    WHERE e.stream = %s AND e.topic = ANY (%s) ORDER BY e.version
"""
# The primary key of job_events: a retention's account ends with the event that has no more.
_LEFT = """
    SELECT (d.said ->> 'since')::timestamptz, (d.said ->> 'until')::timestamptz
    FROM :schema.job_events e CROSS JOIN LATERAL (SELECT :schema.decoded(e.state) AS said) d
    WHERE e.stream = %s AND e.topic = 'log.occurrences_pruned.1' AND e.recorded_at >= %s
      AND NOT coalesce((d.said ->> 'more')::boolean, false)
    ORDER BY e.version
"""
_MILLISECOND = timedelta(milliseconds=1)
_TOPICS = [event.topic for event in DEFINING]


class PostgresOrders:
    """As :class:`FindsTriggers` and :class:`FindsOccurrences` promise."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._triggered = database.sql(_TRIGGERED)
        self._existing = database.sql(_EXISTING)
        self._outcomes = database.sql(_OUTCOMES)
        self._defining = database.sql(_DEFINING)
        self._left = database.sql(_LEFT)

    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:
        rows = self._database.query(self._triggered, (job_id, request_id))
        if not rows:
            return None
        version, topic, state = rows[0]
        event = read_event(topic, bytes(state), where=f"{job_id}:{version}")
        return cast("Triggered", event).occurrence_id

    def existing(self, ids: Sequence[UUID]) -> set[UUID]:
        return {identity for (identity,) in self._database.query(self._existing, (Uuids(ids),))}

    def outcomes(self, job_id: UUID, fires: Sequence[datetime]) -> dict[datetime, set[Phase]]:
        found: dict[datetime, set[Phase]] = {}
        if not fires:
            return found
        params = {
            "job": job_id,
            "fires": Instants(list(fires)),
            "low": fire_time_floor(min(fires)),
            "high": fire_time_floor(max(fires) + _MILLISECOND),
        }
        for fire, state in self._database.query(self._outcomes, params):
            found.setdefault(fire, set()).add(cast("Phase", state))
        return found

    def defining(self, job_id: UUID) -> list[tuple[int, datetime, JobEvent]]:
        return [
            (
                version,
                recorded_at,
                cast("JobEvent", read_event(topic, bytes(state), where=f"{job_id}:{version}")),
            )
            for version, recorded_at, topic, state in self._database.query(
                self._defining, (job_id, _TOPICS)
            )
        ]

    def left_the_log(self, since: datetime) -> list[tuple[datetime, datetime]]:
        stream = log_stream(self._database.namespace)
        rows = self._database.query(self._left, (stream, since))
        return [(low, high) for low, high in rows]
