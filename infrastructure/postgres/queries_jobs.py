"""Listing jobs from the read model of current definitions."""

from typing import Any
from uuid import UUID

from horolog.application.queries.ports import JobFilter
from horolog.domain.job import JobState
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.states import JOB_COLUMNS, job_of

# Active jobs are found through the index of next runs, where finished one-offs do not stand in the
# way; the others through the primary key of jobs, or jobs_name where a name is given. (An index of
# the status would make the end of every one-off touch all indexes of its row.)
_JOBS = f"""
    SELECT {JOB_COLUMNS}, coalesce(r.fire_time, j.held_fire), coalesce(r.fires, j.fires)
    FROM :schema.jobs j LEFT JOIN :schema.next_runs r ON r.id = j.id
    WHERE j.id > %(after)s {{conditions}}
    ORDER BY j.id LIMIT %(limit)s
"""
_ACTIVE = f"""
    SELECT {JOB_COLUMNS}, coalesce(r.fire_time, j.held_fire), coalesce(r.fires, j.fires)
    FROM :schema.next_runs r JOIN :schema.jobs j ON j.id = r.id
    WHERE r.id > %(after)s AND r.kind = 'job' AND j.status = 'active' {{conditions}}
    ORDER BY r.id LIMIT %(limit)s
"""
_NIL = UUID(int=0)


class PostgresJobList:
    """As :class:`horolog.application.queries.ports.ListsJobs` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def jobs(self, wanted: JobFilter, *, after: UUID | None, limit: int) -> list[JobState]:
        conditions: list[str] = []
        params: dict[str, Any] = {"after": after or _NIL, "limit": limit}
        through_index = wanted.status == "active" and wanted.name is None
        if wanted.status is not None and not through_index:
            conditions.append("AND j.status = %(status)s")
            params["status"] = wanted.status
        if wanted.name is not None:
            conditions.append("AND j.name = %(name)s")
            params["name"] = wanted.name
        if wanted.label is not None:
            name, value = wanted.label
            params["label"] = name
            conditions.append("AND jsonb_exists(j.labels, %(label)s)")
            if value is not None:
                conditions.append("AND j.labels ->> %(label)s = %(value)s")
                params["value"] = value
        text = _ACTIVE if through_index else _JOBS
        statement = self._database.sql(text.format(conditions=" ".join(conditions)))
        return [job_of(row) for row in self._database.query(statement, params)]
