"""Listing occurrences: the unfinished from the next-run index, the finished from the execution log.

Ids begin with the fire time, so a range of time is a range of ids, and a page is the next stretch
of an index. The last event of each row of the page is looked up by its key for what it says.
"""

from datetime import datetime, timedelta
from typing import Any, cast, get_args
from uuid import UUID

from horolog.application.answers.occurrence import Occurrence, last_words, meant_for
from horolog.application.queries.ports import OccurrenceFilter
from horolog.domain.ids import OccurrenceKind, fire_time_floor
from horolog.domain.occurrence import FINISHED, Phase
from horolog.infrastructure.postgres.database import Database, Row

# executions_job where a job is given, executions_unusual where such a state is, else the primary
# key of executions.
_FINISHED = """
    (SELECT x.id, x.job_id, x.state, x.fire_time, x.attempt, x.kind, x.failures, x.version,
            x.partition, NULL::timestamptz AS due_at, x.finished_at
     FROM :schema.executions x WHERE {range} {filters} ORDER BY x.id {direction} LIMIT %(limit)s)
"""
# next_runs_unfinished, and then a sort: along the primary key all jobs would stand in the way. So
# the range of ids is left to the outer query, where the planner cannot take that way.
_UNFINISHED = """
    (WITH unfinished AS MATERIALIZED (
         SELECT x.id, x.job_id, x.state, x.fire_time, x.attempt, x.kind, x.failures, x.version,
                x.partition, x.due_at, NULL::timestamptz AS finished_at
         FROM :schema.next_runs x WHERE x.kind <> 'job' {filters})
     SELECT * FROM unfinished x WHERE {range} ORDER BY x.id {direction} LIMIT %(limit)s)
"""
# The primary key of next_runs.
_ONE_UNFINISHED = """
    (SELECT x.id, x.job_id, x.state, x.fire_time, x.attempt, x.kind, x.failures, x.version,
            x.partition, x.due_at, NULL::timestamptz AS finished_at
     FROM :schema.next_runs x WHERE x.kind <> 'job' AND {range} {filters} {direction}
     LIMIT %(limit)s)
"""
# The primary key of the month's events, twice for each row of the page: its last word, its first.
_PAGE = """
    SELECT o.*, e.recorded_at, e.topic, e.state, f.state
    FROM (SELECT * FROM ({both}) AS either ORDER BY id {direction} LIMIT %(limit)s) AS o
    LEFT JOIN :schema.occurrence_events e ON e.stream = o.id AND e.version = o.version
    LEFT JOIN :schema.occurrence_events f ON f.stream = o.id AND f.version = 1
    ORDER BY o.id {direction}
"""
_LOWEST, _HIGHEST = UUID(int=0), UUID(int=(1 << 128) - 1)


class PostgresOccurrenceList:
    """As :class:`horolog.application.queries.ports.ListsOccurrences` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._one = database.sql(_page("x.id = %(id)s", [], [_ONE_UNFINISHED, _FINISHED]))

    def occurrence(self, occurrence_id: UUID) -> Occurrence | None:
        rows = self._database.query(self._one, {"id": occurrence_id, "limit": 1})
        return _occurrence(rows[0]) if rows else None

    def occurrences(
        self,
        wanted: OccurrenceFilter,
        *,
        after: UUID | None,
        limit: int,
        newest_first: bool = False,
    ) -> list[Occurrence]:
        low, high = _range(wanted, after, newest_first=newest_first)
        filters: list[str] = []
        params: dict[str, Any] = {"low": low, "high": high, "limit": limit}
        for name, condition in (
            ("job_id", "x.job_id = %(job_id)s"),
            ("since", "x.fire_time >= %(since)s"),
            ("until", "x.fire_time < %(until)s"),
        ):
            value = getattr(wanted, name)
            if value is not None:
                filters.append(condition)
                params[name] = value
        branches = [_UNFINISHED, _FINISHED]
        if wanted.state is not None:
            # Spelled out: for a parameter the planner cannot know that executions_unusual has it.
            assert wanted.state in get_args(Phase)
            filters.append(f"x.state = '{wanted.state}'")
            branches = [_FINISHED] if wanted.state in FINISHED else [_UNFINISHED]
        between = "x.id > %(low)s AND x.id < %(high)s"
        text = _page(between, filters, branches, "DESC" if newest_first else "")
        return [_occurrence(row) for row in self._database.query(self._database.sql(text), params)]


def _page(range_: str, filters: list[str], branches: list[str], direction: str = "") -> str:
    parts = {"range": range_, "filters": "".join(f" AND {each}" for each in filters)}
    filled = [branch.format(**parts, direction=direction) for branch in branches]
    return _PAGE.format(both=" UNION ALL ".join(filled), direction=direction)


def _range(
    wanted: OccurrenceFilter, after: UUID | None, *, newest_first: bool
) -> tuple[UUID, UUID]:
    """The ids between which the page lies, both excluded."""
    low = _LOWEST if wanted.since is None else _before(fire_time_floor(wanted.since))
    high = _HIGHEST if wanted.until is None else fire_time_floor(_next_ms(wanted.until))
    if after is None:
        return low, high
    return (low, min(high, after)) if newest_first else (max(low, after), high)


def _before(identity: UUID) -> UUID:
    return UUID(int=max(identity.int - 1, 0))


def _next_ms(moment: datetime) -> datetime:
    return moment + timedelta(milliseconds=1)


def _occurrence(row: Row) -> Occurrence:
    recorded_at, topic, state, first_state = row[11:]
    return Occurrence(
        id=row[0],
        job_id=row[1],
        state=cast("Phase", row[2]),
        fire_time=row[3],
        attempt=row[4],
        kind=cast("OccurrenceKind", row[5]),
        failures=row[6],
        version=row[7],
        partition=row[8],
        due_at=row[9],
        finished_at=row[10],
        since=recorded_at,
        **last_words(topic, state),
        jittered_at=meant_for(first_state),
    )
