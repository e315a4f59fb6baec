"""The two sets of tables: the one in use, in the namespace's schema, and another in one beside it.

Their schemas have a ``$`` in their names, which no namespace has.
"""

from collections.abc import Sequence
from typing import Final

from psycopg import sql

from horolog.infrastructure.postgres.database import Database
from horolog.projections.changes import PROJECTIONS

FOLDED: Final = ("next_runs", "jobs", "dead_letters")
"""The tables that a fold rests on: they are in every set, asked for or not."""

KEYS: Final = {
    "next_runs": "id",
    "jobs": "id",
    "executions": "id",
    "dead_letters": "id",
    "partitions": "partition",
}


class TableSet:
    """One set of tables beside those in use: ``shadow`` while it is filled, ``old`` when it was
    exchanged. Composes statements for both: ``:schema`` is the set in use, ``:other`` this one."""

    def __init__(self, database: Database, kind: str) -> None:
        self._database = database
        self.schema = f"{database.namespace}${kind}"

    def sql(self, text: str) -> sql.Composed:
        parts = [self._database.sql(part) for part in text.split(":other")]
        return sql.SQL("").join([parts[0], *_between(sql.Identifier(self.schema), parts[1:])])


def tables_of(projections: Sequence[str]) -> list[str]:
    """The tables of a set for these projections."""
    return [name for name in PROJECTIONS if name in projections or name in FOLDED]


def _between(separator: sql.Composable, parts: Sequence[sql.Composable]) -> list[sql.Composable]:
    return [piece for part in parts for piece in (separator, part)]
