"""Which code may work on which schema.

A schema is known by its last migration, code by the last one that it brings. Each side says how far
it goes: code works on every schema that has all the migrations that it cannot do without, and a
schema admits code from some migration on (``Migration.admits``, kept in the table ``migrations``).
Newer code on an older schema is told to migrate; older code on a newer schema goes on where that
admits it, and otherwise is refused before it does anything.
"""

from collections.abc import Sequence
from typing import NamedTuple

from horolog.domain.errors import SchemaMissing, SchemaTooNew
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.migration_files import Migration, migrations


class Record(NamedTuple):
    """What the database holds of a migration that was applied to it."""

    digest: str
    admits: int


Applied = dict[int, Record]

# The column is younger than the table.
_APPLIED = """
    SELECT m.number, m.digest, coalesce((to_jsonb(m) ->> 'admits')::integer, m.number)
    FROM :schema.migrations m
"""
# Who does not say what it knows is older than the question; it knows no more than what is there.
_OLDER = """
    SELECT i.role || ' ' || i.instance FROM :schema.instances i
    WHERE i.seen_until >= clock_timestamp()
      AND coalesce((i.details ->> 'schema')::integer, %s) < %s
    ORDER BY i.role, i.instance LIMIT 20
"""


def known_schema() -> int:
    """The last migration that this code knows."""
    return migrations()[-1].number


def present_migrations(connection: Connection, database: Database) -> Applied:
    """What was applied; nothing where the namespace does not exist."""
    found = connection.execute(
        "SELECT to_regclass(%s)", (f'"{database.namespace}".migrations',)
    ).fetchone()
    if found is None or found[0] is None:
        return {}
    rows = connection.execute(database.sql(_APPLIED)).fetchall()
    return {number: Record(digest, admits) for number, digest, admits in rows}


def check_admitted(present: Applied, known: Sequence[Migration]) -> None:
    """Raises ``SchemaTooNew`` for a schema that does not admit code of these migrations."""
    texts = {migration.number: migration for migration in known}
    last = max(texts)
    for number, record in sorted(present.items()):
        if number not in texts:
            if record.admits > last:
                raise SchemaTooNew(
                    f"the schema has migration {number}, this code knows {last}, and that does not"
                    f" work together (it takes code that knows {record.admits}):"
                    " upgrade horolog on this machine"
                )
        elif texts[number].digest != record.digest:
            raise SchemaTooNew(
                f"migration {number} ({texts[number].name}) was applied with another text:"
                " the schema was made by a different build of horolog"
            )


def check_complete(present: Applied, known: Sequence[Migration], namespace: str) -> None:
    """Raises ``SchemaMissing`` for a schema that lacks what this code cannot do without."""
    missing = [m.name for m in known if m.number not in present and not m.dispensable]
    if missing:
        what = "no Horolog schema" if not present else f"an older schema (missing: {missing[0]})"
        raise SchemaMissing(
            f"the database has {what} under namespace {namespace!r}: run `horolog migrate`"
        )


def living_and_older(
    connection: Connection, database: Database, needed: int, at_most: int
) -> list[str]:
    """The scanners and workers that live and know less than migration ``needed``."""
    if needed <= 0 or not _has_instances(connection, database):
        return []
    rows = connection.execute(database.sql(_OLDER), (at_most, needed)).fetchall()
    return [row[0] for row in rows]


def _has_instances(connection: Connection, database: Database) -> bool:
    name = f'"{database.namespace}".instances'
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
    return row is not None and bool(row[0])
