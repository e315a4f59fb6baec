"""Numbered migrations: from an empty database, or any earlier release, to this one.

Safe to run at once from many processes: an advisory lock lets one work and the others find it done.
Each migration is a transaction of its own and is recorded with a hash of its text, so a file that
was changed after its release is noticed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

import psycopg
from psycopg import sql

from horolog.domain.errors import InvalidSetting, SchemaMissing, SchemaTooNew, StoreUnavailable
from horolog.domain.ids import partition_stream
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.retention.ahead import create_months_ahead

PARTITIONS = 64
"""How many partitions a new namespace gets unless told otherwise; fixed from then on."""

OLDEST_POSTGRES = 140000


@dataclass(frozen=True, slots=True)
class Migration:
    """``number`` from 1 without gaps; ``text`` the SQL with its placeholders."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Every migration of this release, in order."""
    return sorted(_read(), key=lambda migration: migration.number)


def migrate(
    database: Database, *, partitions: int = PARTITIONS, grant_to: tuple[str, ...] = ()
) -> list[Migration]:
    """Brings the schema to this release and returns what was applied (nothing: it was current).

    ``partitions`` counts only for a new namespace. ``grant_to`` names existing roles that get what
    a service needs. Raises ``SchemaTooNew`` for a schema of a newer release, ``StoreUnavailable``.
    """
    if not 1 <= partitions <= 1024:
        raise InvalidSetting(f"partitions={partitions}: a namespace has from 1 to 1024 of them")
    applied: list[Migration] = []
    with database.session() as connection:
        if connection.info.server_version < OLDEST_POSTGRES:
            version = connection.info.server_version // 10000
            raise StoreUnavailable(f"Postgres {version} is too old: Horolog needs 14 or newer")
        connection.execute("SET lock_timeout = '60s'")
        key = f"{database.namespace}/migrate"
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (key,))
        present = _present(connection, database)
        _check(present)
        for migration in migrations():
            if migration.number not in present:
                _apply(connection, database, migration)
                applied.append(migration)
        _create_namespace(connection, database, partitions)
        create_months_ahead(database, connection)
        for role in grant_to:
            try:
                connection.execute(database.sql("SELECT :schema.grant_service(%s)"), (role,))
            except psycopg.errors.UndefinedObject as error:
                raise InvalidSetting(
                    f"there is no Postgres role {role!r}: create it, then grant to it"
                ) from error
    return applied


def check_schema(database: Database) -> None:
    """Raises ``SchemaMissing`` or ``SchemaTooNew`` unless this code can work on the schema."""
    with database.connection() as connection:
        present = _present(connection, database)
    _check(present)
    missing = [m.name for m in migrations() if m.number not in present]
    if missing:
        what = "no Horolog schema" if not present else f"an older schema (missing: {missing[0]})"
        raise SchemaMissing(
            f"the database has {what} under namespace {database.namespace!r}: run `horolog migrate`"
        )


def _read() -> Iterator[Migration]:
    folder = files("horolog.infrastructure.postgres") / "migrations"
    for file in folder.iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            yield Migration(int(number), name, file.read_text())


def _present(connection: Connection, database: Database) -> dict[int, str]:
    found = connection.execute(
        "SELECT to_regclass(%s)", (f'"{database.namespace}".migrations',)
    ).fetchone()
    if found is None or found[0] is None:
        return {}
    rows = connection.execute(database.sql("SELECT number, digest FROM :schema.migrations"))
    return dict(rows.fetchall())


def _check(present: dict[int, str]) -> None:
    known = {migration.number: migration for migration in migrations()}
    if newer := sorted(present.keys() - known.keys()):
        raise SchemaTooNew(
            f"the schema has migration {newer[-1]}, this code knows {len(known)}:"
            " upgrade horolog on this machine"
        )
    for number, digest in present.items():
        if known[number].digest != digest:
            raise SchemaTooNew(
                f"migration {number} ({known[number].name}) was applied with another text:"
                " the schema was made by a different build of horolog"
            )


def _apply(connection: Connection, database: Database, migration: Migration) -> None:
    with connection.transaction():
        connection.execute(
            sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(database.namespace))
        )
        connection.execute(
            database.sql(
                "CREATE TABLE IF NOT EXISTS :schema.migrations (number integer PRIMARY KEY,"
                " name text NOT NULL, digest text NOT NULL,"
                " applied_at timestamptz NOT NULL DEFAULT now())"
            )
        )
        connection.execute(database.sql(migration.text), prepare=False)
        connection.execute(
            database.sql(
                "INSERT INTO :schema.migrations (number, name, digest) VALUES (%s, %s, %s)"
            ),
            (migration.number, migration.name, migration.digest),
        )


def _create_namespace(connection: Connection, database: Database, partitions: int) -> None:
    with connection.transaction():
        created = connection.execute(
            database.sql(
                "INSERT INTO :schema.namespace (name, partitions) VALUES (%s, %s)"
                " ON CONFLICT DO NOTHING RETURNING partitions"
            ),
            (database.namespace, partitions),
        ).fetchone()
        if created is None:
            return
        streams = [partition_stream(database.namespace, n) for n in range(partitions)]
        connection.execute(
            database.sql(
                "INSERT INTO :schema.partitions (partition, stream)"
                " SELECT n - 1, s FROM unnest(%s::uuid[]) WITH ORDINALITY AS t (s, n)"
            ),
            (streams,),
        )
