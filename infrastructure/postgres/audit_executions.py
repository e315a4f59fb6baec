"""Runs for the audit: chosen along an index, beside their jobs, with what their events say of them.

Three ways lead to them. Along the ids, which begin with the fire times; along the ids of each of a
few jobs; or along the positions of the events that ended them, for "what ended between then and
then" (a backfill's or a replay's fire time says nothing of that).
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, cast, get_args
from uuid import UUID

from horolog.application.answers.execution import Execution
from horolog.application.queries.audit_ports import ExecutionChoice, Timing
from horolog.domain.errors import UnknownOccurrence
from horolog.domain.failure import FailureKind
from horolog.domain.ids import OccurrenceKind, fire_time_floor
from horolog.domain.occurrence import FINISHED, Phase
from horolog.infrastructure.postgres.arrays import Uuids
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.job_choice import few_jobs, job_conditions
from horolog.infrastructure.postgres.position_at import PostgresPositions
from horolog.infrastructure.postgres.slices import Piece, all_pieces, looked_through

_COLUMNS = (
    "x.id, x.job_id, x.state, x.fire_time, x.attempt, x.kind, x.failures, x.version,"
    " {finished_at} AS finished_at, {key} AS key"
)
_FINISHED = _COLUMNS.format(finished_at="x.finished_at", key="x.id")
_UNFINISHED = _COLUMNS.format(finished_at="NULL::timestamptz", key="x.id")

# The primary key of executions; executions_unusual where such a state is chosen.
_BY_FIRE_TIME = f"""
    (SELECT {_FINISHED} FROM :schema.executions x
     WHERE x.id > %(low)s AND x.id < %(high)s {{state}} ORDER BY x.id LIMIT %(look)s)
"""
# executions_job, a stretch of it for each job.
_OF_FEW_JOBS = f"""
    (SELECT x.* FROM unnest(%(jobs)b) AS w (job)
     CROSS JOIN LATERAL (
         SELECT {_FINISHED} FROM :schema.executions x
         WHERE x.job_id = w.job AND x.id > %(low)s AND x.id < %(high)s {{state}}
         ORDER BY x.id LIMIT %(look)s) x
     ORDER BY x.id LIMIT %(look)s)
"""
# next_runs_unfinished; they are sorted, so what is unfinished now is the bound.
_STILL_OPEN = f"""
    (WITH unfinished AS MATERIALIZED (
         SELECT {_UNFINISHED} FROM :schema.next_runs x
         WHERE x.kind <> 'job' {{jobs}} {{state}})
     SELECT * FROM unfinished x WHERE x.id > %(low)s AND x.id < %(high)s
     ORDER BY x.id LIMIT %(look)s)
"""
# The position indexes of the events, then the primary key of executions: the events that ended a
# run and are its last.
_BY_END = f"""
    (SELECT {_COLUMNS.format(finished_at="x.finished_at", key="e.position")}
     FROM :schema.occurrence_events e
     JOIN :schema.executions x ON x.id = e.stream AND x.version = e.version
     WHERE e.position > %(low)s AND e.position <= %(high)s AND e.topic IN (
         'occurrence.succeeded.1', 'occurrence.dead_lettered.1', 'occurrence.skipped.1',
         'occurrence.discarded.1', 'occurrence.stopped.1') {{state}}
     ORDER BY e.position LIMIT %(look)s)
"""
# The primary keys of jobs and of the events. What was looked at is told beside what was chosen.
_CHOSEN = """
    WITH looked AS MATERIALIZED (
        SELECT * FROM ({ways}) AS ways ORDER BY key LIMIT %(look)s
    ), chosen AS MATERIALIZED (
        SELECT x.*, j.key AS job_key, j.name, j.queue, j.owner, j.labels
        FROM looked x JOIN :schema.jobs j ON j.id = x.job_id
        WHERE true {conditions} ORDER BY x.key LIMIT %(limit)s
    )
    SELECT CASE WHEN a.looked = %(look)s THEN a.last END, {columns}
    FROM (SELECT (SELECT count(*) FROM looked) AS looked,
                 (SELECT key FROM looked ORDER BY key DESC LIMIT 1) AS last) a
    LEFT JOIN chosen x ON true {joins}
    ORDER BY x.key
"""
_FIRST = """
    LEFT JOIN :schema.occurrence_events f ON f.stream = x.id AND f.version = 1
    LEFT JOIN LATERAL (
        SELECT e.recorded_at, e.state FROM :schema.occurrence_events e
        WHERE e.stream = x.id AND e.topic = 'occurrence.attempted.1'
        ORDER BY e.version LIMIT 1) b ON true
"""
_MEANT = """coalesce(CASE WHEN f.state LIKE '%%"due"%%'::bytea
    THEN (:schema.decoded(f.state) ->> 'due')::timestamptz END, x.fire_time)"""
_LAST = """
    LEFT JOIN LATERAL (
        SELECT :schema.decoded(e.state) AS said FROM :schema.occurrence_events e
        WHERE e.stream = x.id AND e.topic IN (
            'occurrence.succeeded.1', 'occurrence.failed.1', 'occurrence.stopped.1')
        ORDER BY e.version DESC LIMIT 1) l ON true
"""
# Where there was one attempt only, the first is the last; what never failed is not searched for it.
_EXECUTION: Final = (
    f"""x.id, x.job_id, x.job_key, x.name, x.queue, x.owner, x.labels, x.state, x.kind, x.fire_time,
    {_MEANT}, CASE WHEN f.topic = 'occurrence.claimed.1' THEN f.recorded_at END, b.recorded_at,
    x.finished_at, x.attempt, x.failures,
    :schema.decoded(coalesce(w.state, b.state)) ->> 'actor',
    CASE WHEN (l.said ->> 'attempt')::int = x.attempt THEN (l.said ->> 'seconds')::float8 END,
    CASE d.topic WHEN 'occurrence.lost.1' THEN 'lost' ELSE d.said ->> 'kind' END,
    d.said ->> 'error'""",
    _FIRST
    + _LAST
    + """
    LEFT JOIN LATERAL (
        SELECT e.state FROM :schema.occurrence_events e
        WHERE x.attempt > 1 AND e.stream = x.id AND e.topic = 'occurrence.attempted.1'
        ORDER BY e.version DESC LIMIT 1) w ON true
    LEFT JOIN LATERAL (
        SELECT e.topic, :schema.decoded(e.state) AS said FROM :schema.occurrence_events e
        WHERE (x.attempt > 1 OR x.failures > 0) AND e.stream = x.id
          AND e.topic IN ('occurrence.failed.1', 'occurrence.lost.1')
        ORDER BY e.version DESC LIMIT 1) d ON true
    """,
)
_TIMING: Final = (
    f"""x.job_id, x.name, x.fire_time, x.state, b.recorded_at IS NOT NULL, x.failures,
    (l.said ->> 'seconds')::float8, extract(epoch FROM b.recorded_at - {_MEANT})::float8""",
    _FIRST + _LAST,
)
# What was skipped has run only if an attempt had begun; what was ordered is about to.
_RAN = """AND x.state <> 'scheduled' AND (x.state <> 'skipped' OR EXISTS (
    SELECT FROM :schema.occurrence_events e
    WHERE e.stream = x.id AND e.topic = 'occurrence.attempted.1'))"""
_ENDED_AT = """
    SELECT e.position FROM :schema.executions x
    JOIN :schema.occurrence_events e ON e.stream = x.id AND e.version = x.version WHERE x.id = %s
"""
_ATTEMPTED_BY = """ AND EXISTS (
    SELECT FROM :schema.occurrence_events e
    WHERE e.stream = x.id AND e.topic = 'occurrence.attempted.1'
      AND :schema.decoded(e.state) ->> 'actor' = %(worker)s)"""
_FAILED_AS = """ AND x.failures > 0 AND EXISTS (
    SELECT FROM :schema.occurrence_events e
    WHERE e.stream = x.id AND e.topic = 'occurrence.failed.1'
      AND :schema.decoded(e.state) ->> 'kind' = %(failure)s)"""
_LOST = """ AND EXISTS (
    SELECT FROM :schema.occurrence_events e
    WHERE e.stream = x.id AND e.topic = 'occurrence.lost.1')"""
_LOWEST, _HIGHEST = UUID(int=0), UUID(int=(1 << 128) - 1)
_MS = timedelta(milliseconds=1)


class Reading(NamedTuple):
    """How a choice is read: the statement, its parameters, and the keys between which it lies."""

    text: str
    params: dict[str, Any]
    low: UUID | int
    high: UUID | int
    selective: bool


class PostgresExecutions:
    """As :class:`horolog.application.queries.audit_ports.ListsExecutions` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._positions = PostgresPositions(database)
        self._ended_at = database.sql(_ENDED_AT)

    def executions(
        self, wanted: ExecutionChoice, *, after: UUID | None, limit: int
    ) -> list[Execution]:
        reading = self._reading(wanted, _EXECUTION)
        if reading is None:
            return []
        begin = after if after is None or not wanted.by_end else self._end_of(after)
        return looked_through(
            self._pieces(reading, _execution),
            after=begin,
            limit=limit,
            selective=reading.selective,
        )

    def timings(self, wanted: ExecutionChoice) -> Iterator[Timing]:
        reading = self._reading(wanted, _TIMING, finished=True)
        if reading is not None:
            yield from all_pieces(self._pieces(reading, _timing))

    def _pieces(
        self, reading: Reading, answer: Callable[[Row], Any]
    ) -> Callable[[UUID | int | None, int, int], Piece[Any, UUID | int]]:
        statement = self._database.sql(reading.text)

        def read(after: UUID | int | None, look: int, limit: int) -> Piece[Any, UUID | int]:
            low = reading.low if after is None else max(cast("Any", after), reading.low)
            bounds = {"low": low, "high": reading.high, "look": look, "limit": limit}
            rows = self._database.query(statement, reading.params | bounds)
            found = [answer(row[1:]) for row in rows if row[1] is not None]
            return Piece(found, rows[0][0] if rows else None)

        return read

    def _reading(
        self, wanted: ExecutionChoice, what: tuple[str, str], *, finished: bool = False
    ) -> Reading | None:
        params: dict[str, Any] = {}
        jobs = None if wanted.by_end else few_jobs(self._database, wanted.jobs)
        if jobs == []:
            return None
        conditions = job_conditions(wanted.jobs, params) + _conditions(wanted, params)
        state = "" if finished else _RAN
        if wanted.state is not None:
            # Spelled out: for a parameter the planner cannot know that executions_unusual has it.
            assert wanted.state in get_args(Phase)
            state = f"AND x.state = '{wanted.state}'"
        low: UUID | int
        high: UUID | int
        if wanted.by_end:
            ways = [_BY_END.format(state=state)]
            low, high = self._between(wanted.since, wanted.until)
        else:
            ways = [(_BY_FIRE_TIME if jobs is None else _OF_FEW_JOBS).format(state=state)]
            of_jobs = "" if jobs is None else "AND x.job_id = ANY (%(jobs)b)"
            unfinished = _STILL_OPEN.format(jobs=of_jobs, state=state)
            if not finished and wanted.state is None:
                ways.append(unfinished)
            elif wanted.state is not None and wanted.state not in FINISHED:
                ways = [] if finished else [unfinished]
            low, high = _ids_between(wanted.since, wanted.until)
        if not ways:
            return None
        if jobs is not None:
            params["jobs"] = Uuids(jobs)
        columns, joins = what
        text = _CHOSEN.format(
            ways=" UNION ALL ".join(ways), conditions=conditions, columns=columns, joins=joins
        )
        selective = bool(conditions) and not (jobs is not None and _only_jobs(wanted))
        return Reading(text, params, low, high, selective)

    def _between(self, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        tick = timedelta(microseconds=1)
        low = 0 if since is None else self._positions.position_at(since - tick)
        high = 2**62 if until is None else self._positions.position_at(until - tick)
        return low, high

    def _end_of(self, after: UUID) -> int:
        rows = self._database.query(self._ended_at, (after,))
        if not rows:
            raise UnknownOccurrence(f"after={after}: no finished occurrence has this id")
        return rows[0][0]


def _conditions(wanted: ExecutionChoice, params: dict[str, Any]) -> str:
    conditions = ""
    if not wanted.by_end:
        for name, operator in (("since", ">="), ("until", "<")):
            if (value := getattr(wanted, name)) is not None:
                conditions += f" AND x.fire_time {operator} %({name})s"
                params[name] = value
    if wanted.kind is not None:
        assert wanted.kind in get_args(OccurrenceKind)
        conditions += f" AND x.kind = '{wanted.kind}'"
    if wanted.worker is not None:
        conditions += _ATTEMPTED_BY
        params["worker"] = wanted.worker
    if wanted.failure is not None:
        assert wanted.failure in get_args(FailureKind)
        conditions += _LOST if wanted.failure == "lost" else _FAILED_AS
        params["failure"] = wanted.failure
    return conditions


def _only_jobs(wanted: ExecutionChoice) -> bool:
    """Whether every row that the index leads to fits (but for a millisecond at each end)."""
    return wanted.kind is None and wanted.worker is None and wanted.failure is None


def _ids_between(since: datetime | None, until: datetime | None) -> tuple[UUID, UUID]:
    """The ids between which fire times from ``since`` to before ``until`` lie, both excluded."""
    low = _LOWEST if since is None else UUID(int=max(fire_time_floor(since).int - 1, 0))
    return low, _HIGHEST if until is None else fire_time_floor(until + _MS)


def _execution(row: Row) -> Execution:
    return Execution(*row)


def _timing(row: Row) -> Timing:
    return Timing(*row)
