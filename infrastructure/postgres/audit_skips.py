"""What did not run: dropped ranges of fire times and skipped runs, merged in the order of time.

Both are sorted by one key: a skipped run's id, and for a range the same bits made of its last fire
time and its position. So a page is the next stretch of two indexes. Ranges that go on beyond the
end of what is asked for come last; there is at most one of them for each job and cause.
"""

from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from horolog.application.answers.skip import Skip
from horolog.application.queries.audit_ports import SkipChoice
from horolog.application.queries.telling import SKIPPED_BECAUSE
from horolog.domain.ids import fire_time_floor
from horolog.domain.job_events import SkipCause
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.job_choice import job_conditions
from horolog.infrastructure.postgres.slices import Piece, looked_through

_RANGE = """
    SELECT :schema.skip_key(e.state, e.position) AS key, e.stream AS job_id, e.position,
           e.recorded_at, e.state, NULL::uuid AS occurrence_id, NULL::timestamptz AS fire_time
    FROM :schema.job_events e WHERE e.topic = 'job.fires_skipped.1'
"""
# job_events_skips.
_RANGES = f"""
    ({_RANGE} AND :schema.skip_key(e.state, e.position) > %(low)s
              AND :schema.skip_key(e.state, e.position) < %(high)s
     ORDER BY :schema.skip_key(e.state, e.position) LIMIT %(look)s)
"""
# job_events_skipped_fires.
_BEYOND = f"""
    ({_RANGE} AND :schema.skipped_fires(e.state) @> %(last)s::timestamptz
              AND :schema.skip_key(e.state, e.position) >= %(high)s
              AND :schema.skip_key(e.state, e.position) > %(low)s
     ORDER BY 1 LIMIT %(look)s)
"""
# executions_unusual, then the primary key of the month's events.
_RUNS = """
    (SELECT x.id, x.job_id, e.position, e.recorded_at, e.state, x.id, x.fire_time
     FROM (SELECT x.id, x.job_id, x.version, x.fire_time FROM :schema.executions x
           WHERE x.state = 'skipped' AND x.id > %(low)s AND x.id < %(high)s
           ORDER BY x.id LIMIT %(look)s) x
     JOIN :schema.occurrence_events e ON e.stream = x.id AND e.version = x.version)
"""
_CHOSEN = """
    WITH looked AS MATERIALIZED (
        SELECT * FROM ({ways}) AS ways ORDER BY key LIMIT %(look)s
    ), chosen AS MATERIALIZED (
        SELECT x.key, x.job_id, j.name, d.said ->> 'cause',
               coalesce(x.fire_time, (d.said ->> 'first')::timestamptz) AS first,
               coalesce(x.fire_time, (d.said ->> 'last')::timestamptz) AS last,
               CASE WHEN x.occurrence_id IS NULL THEN (d.said ->> 'count')::int ELSE 1 END,
               x.occurrence_id, x.recorded_at, coalesce(d.said ->> 'actor', ''),
               d.said ->> 'reason', x.position
        FROM looked x JOIN :schema.jobs j ON j.id = x.job_id
        CROSS JOIN LATERAL (SELECT :schema.decoded(x.state) AS said) d
        WHERE true {conditions}
    )
    SELECT CASE WHEN a.looked = %(look)s THEN a.last END, c.*
    FROM (SELECT (SELECT count(*) FROM looked) AS looked,
                 (SELECT key FROM looked ORDER BY key DESC LIMIT 1) AS last) a
    LEFT JOIN (SELECT * FROM chosen {between} ORDER BY key LIMIT %(limit)s) c ON true
    ORDER BY c.key
"""
_LOWEST, _HIGHEST = UUID(int=0), UUID(int=(1 << 128) - 1)


class PostgresSkips:
    """As :class:`horolog.application.queries.audit_ports.ListsSkips` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def skips(self, wanted: SkipChoice, *, after: UUID | None, limit: int) -> list[Skip]:
        params: dict[str, Any] = {}
        conditions = job_conditions(wanted.jobs, params)
        if wanted.cause is not None:
            conditions += " AND d.said ->> 'cause' = %(cause)s"
            params["cause"] = wanted.cause
        low, high = _LOWEST, _HIGHEST
        between: list[str] = []
        ways = [_RANGES, _RUNS]
        if wanted.since is not None:
            low = UUID(int=max(fire_time_floor(wanted.since).int - 1, 0))
            between.append("last >= %(since)s")
            params["since"] = wanted.since
        if wanted.until is not None:
            high = fire_time_floor(wanted.until + timedelta(milliseconds=1))
            between.append("first < %(until)s")
            params |= {"until": wanted.until, "last": _just_before(wanted.until)}
            ways.append(_BEYOND)
        statement = self._database.sql(
            _CHOSEN.format(
                ways=" UNION ALL ".join(ways),
                conditions=conditions,
                between=f"WHERE {' AND '.join(between)}" if between else "",
            )
        )

        def read(begin: UUID | None, look: int, most: int) -> Piece[Skip, UUID]:
            bounds = {"low": max(begin or low, low), "high": high, "look": look, "limit": most}
            rows = self._database.query(statement, params | bounds)
            return Piece([_skip(row[1:]) for row in rows if row[1] is not None], rows[0][0])

        selective = bool(conditions or between)
        return looked_through(read, after=after, limit=limit, selective=selective)


def _just_before(moment: datetime) -> datetime:
    return moment - timedelta(microseconds=1)


def _skip(row: Row) -> Skip:
    key, job_id, name, cause, *rest = row
    cause = cast("SkipCause", cause)
    return Skip(key, job_id, name, cause, SKIPPED_BECAUSE.get(cause, cause), *rest)
