"""Both sets in one snapshot, row beside row: what differs is streamed, what is equal costs no line.

What the index alone knows is no difference: a worker's heartbeat and a scanner's look put the next
look of a claimed or running occurrence off without an event. The full lane in which a row waits is
not from the log, nor are leases and publishing marks of the partitions.
"""

from collections.abc import Iterator
from typing import Any, Final

import psycopg

from horolog.application.rebuild.ports import Difference
from horolog.infrastructure.postgres.database import Connection
from horolog.infrastructure.postgres.rebuild.sets import KEYS, TableSet

_NOT_FROM_THE_LOG: Final = {
    "next_runs": {"due_at", "lane"},
    "partitions": {"lease_until", "published"},
}

_PUT_OFF = (
    " OR (l.due_at IS DISTINCT FROM s.due_at AND NOT (l.look AND s.look AND l.version = s.version"
    " AND l.due_at > s.due_at))"
)
_COLUMNS = """
    SELECT attname, atttypid = 'json'::regtype FROM pg_attribute
    WHERE attrelid = format('%%I.%%I', :literal::text, %s::text)::regclass
      AND attnum > 0 AND NOT attisdropped
    ORDER BY attnum
"""
# A merge or hash join of the two primary keys, in a snapshot of both.
_COMPARE = """
    SELECT coalesce(l.{key}, s.{key})::text, to_jsonb(l), to_jsonb(s)
    FROM :schema.{table} l FULL JOIN :other.{table} s ON s.{key} = l.{key}
    WHERE l.{key} IS NULL OR s.{key} IS NULL OR ROW({mine}) IS DISTINCT FROM ROW({theirs}){more}
"""


def differences(connection: Connection, tables: TableSet, name: str) -> Iterator[Difference]:
    """The rows of one table that are not the same in both sets."""
    columns: list[tuple[str, bool]] = connection.execute(tables.sql(_COLUMNS), (name,)).fetchall()  # pyright: ignore[reportAssignmentType]
    left_out = _NOT_FROM_THE_LOG.get(name, set())
    compared = [(column, json) for column, json in columns if column not in left_out]
    statement = _COMPARE.format(
        key=KEYS[name],
        table=name,
        mine=", ".join(_value("l", column, json) for column, json in compared),
        theirs=", ".join(_value("s", column, json) for column, json in compared),
        more=_PUT_OFF if name == "next_runs" else "",
    )
    with psycopg.ServerCursor(connection, f"compare_{name}") as cursor:
        cursor.itersize = 2_000
        cursor.execute(tables.sql(statement))
        for key, in_use, rebuilt in cursor:
            yield _difference(name, key, in_use, rebuilt, left_out - {"due_at"})


def _value(side: str, column: str, json: bool) -> str:
    return f"{side}.{column}::text" if json else f"{side}.{column}"


def _difference(
    name: str,
    key: str,
    in_use: dict[str, Any] | None,
    rebuilt: dict[str, Any] | None,
    left_out: set[str],
) -> Difference:
    if in_use is None or rebuilt is None:
        return Difference(name, key, in_use, rebuilt)
    columns = [
        column
        for column in in_use
        if column not in left_out and in_use[column] != rebuilt.get(column)
    ]
    return Difference(
        name,
        key,
        {column: in_use[column] for column in columns},
        {column: rebuilt.get(column) for column in columns},
    )
