"""The tables of django-celery-beat in a Postgres database: read, never written."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row

from horolog.domain.errors import StoreUnavailable

_TABLES = (
    "periodictask",
    "crontabschedule",
    "intervalschedule",
    "clockedschedule",
    "solarschedule",
)


def celery_beat_rows(url: str) -> dict[str, list[Mapping[str, Any]]]:
    """All rows by table, as JSON values. Raises ``StoreUnavailable``."""
    try:
        with psycopg.connect(url, row_factory=scalar_row, connect_timeout=5) as connection:
            connection.read_only = True
            return {table: _rows(connection, table) for table in _TABLES}
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        raise StoreUnavailable(
            f"the tables of django-celery-beat cannot be read: {said}"
        ) from error


def _rows(connection: psycopg.Connection[Any], table: str) -> list[Mapping[str, Any]]:
    name = sql.Identifier(f"django_celery_beat_{table}")
    query = sql.SQL("SELECT to_jsonb(t) FROM {} AS t ORDER BY t.id LIMIT 100000").format(name)
    return connection.execute(query).fetchall()
