"""Listing jobs from the read model of current definitions."""

from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from horolog.application.queries.ports import JobFilter
from horolog.domain.job import JobState
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.states import JOB_COLUMNS, job_of

_COLUMNS = f"{JOB_COLUMNS}, coalesce(r.fire_time, j.held_fire), coalesce(r.fires, j.fires)"

# The primary key of jobs; jobs_name where a name is given, jobs_labels where a label is,
# jobs_subject where a subject is.
_JOBS = f"""
    SELECT {_COLUMNS}
    FROM :schema.jobs j LEFT JOIN :schema.next_runs r ON r.id = j.id
    WHERE j.id > %(after)s {{conditions}}
    ORDER BY j.id LIMIT %(limit)s
"""
# The primary key of next_runs: finished one-offs do not stand in the way of active jobs there.
_ACTIVE = f"""
    SELECT {_COLUMNS}
    FROM :schema.next_runs r JOIN :schema.jobs j ON j.id = r.id
    WHERE r.id > %(after)s AND r.kind = 'job' {{conditions}}
    ORDER BY r.id LIMIT %(limit)s
"""
# job_events_stopped: jobs that were ever stopped so, of which most still are.
_STOPPED = f"""
    SELECT {_COLUMNS}
    FROM (SELECT DISTINCT e.stream FROM :schema.job_events e
          WHERE e.topic = '{{topic}}' AND e.stream > %(after)s ORDER BY e.stream) stopped
    JOIN :schema.jobs j ON j.id = stopped.stream
    LEFT JOIN :schema.next_runs r ON r.id = j.id
    WHERE true {{conditions}}
    ORDER BY j.id LIMIT %(limit)s
"""
_STOPPING: Final = {"paused": "job.paused.1", "cancelled": "job.cancelled.1"}
_NIL = UUID(int=0)


class PostgresJobList:
    """As :class:`horolog.application.queries.ports.ListsJobs` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def jobs(self, wanted: JobFilter, *, after: UUID | None, limit: int) -> list[JobState]:
        conditions: list[str] = []
        params: dict[str, Any] = {"after": after or _NIL, "limit": limit}
        if wanted.status is not None:
            conditions.append("AND j.status = %(status)s")
            params["status"] = wanted.status
        if wanted.name is not None:
            conditions.append("AND j.name = %(name)s")
            params["name"] = wanted.name
        if wanted.label is not None:
            name, value = wanted.label
            conditions.append("AND j.labels <> '{}'")
            has, label = ("?", name) if value is None else ("@>", Jsonb({name: value}))
            conditions.append(f"AND j.labels {has} %(label)s")
            params["label"] = label
        if wanted.subject is not None:
            conditions.append("AND j.definition ->> 'subject' = %(subject)s")
            params["subject"] = wanted.subject
        text = _statement(wanted).replace("{conditions}", " ".join(conditions))
        rows = self._database.query(self._database.sql(text), params)
        return [job_of(row) for row in rows]


def _statement(wanted: JobFilter) -> str:
    if wanted.name is not None or wanted.label is not None or wanted.subject is not None:
        return _JOBS
    if wanted.status == "active":
        return _ACTIVE
    topic = _STOPPING.get(wanted.status or "")
    return _JOBS if topic is None else _STOPPED.replace("{topic}", topic)
