"""Choosing by what jobs are: the conditions in SQL, and the jobs themselves where they are few."""

from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from horolog.application.queries.audit_ports import JobChoice
from horolog.infrastructure.postgres.database import Database

FEW: Final = 200
"""So many jobs are looked up one by one; of more, the runs of all jobs are looked through."""

# jobs_name where a name is given, jobs_labels where a label is; else a walk over the definitions.
_JOBS = "SELECT j.id FROM :schema.jobs j WHERE true {conditions} LIMIT %(few)s"


def job_conditions(choice: JobChoice, params: dict[str, Any]) -> str:
    """What follows ``WHERE …``, about the jobs' rows ``j``; its values are added to ``params``."""
    conditions: list[str] = []
    for column, value in (
        ("id", choice.job_id),
        ("name", choice.name),
        ("queue", choice.queue),
        ("owner", choice.owner),
    ):
        if value is not None:
            conditions.append(f" AND j.{column} = %(job_{column})s")
            params[f"job_{column}"] = value
    if choice.label is not None:
        name, value = choice.label
        has, label = ("?", name) if value is None else ("@>", Jsonb({name: value}))
        conditions.append(f" AND j.labels <> '{{}}' AND j.labels {has} %(job_label)s")
        params["job_label"] = label
    return "".join(conditions)


def few_jobs(database: Database, choice: JobChoice) -> list[UUID] | None:
    """The jobs that are chosen; ``None`` where they are many, or all."""
    if choice == JobChoice():
        return None
    params: dict[str, Any] = {"few": FEW + 1}
    conditions = job_conditions(choice, params)
    rows = database.query(database.sql(_JOBS.format(conditions=conditions)), params)
    return None if len(rows) > FEW else [identity for (identity,) in rows]
