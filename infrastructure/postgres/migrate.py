"""Numbered migrations: from an empty database, or any earlier release, to this one.

Safe to run at once from many processes: an advisory lock lets one work and the others find it done.
Each migration is a transaction of its own and is recorded with a hash of its text, so a file that
was changed after its release is noticed.

Processes of two releases run side by side while a system is upgraded: first the schema, then the
processes, one by one. So a migration says for which earlier code the schema stays usable, and that
is kept in the database (:mod:`horolog.infrastructure.postgres.compatibility`). Where it says no,
it is refused while older processes live. No lock is waited for longer than ``LOCK_WAIT``: whoever
comes behind a waiting lock waits too.
"""

from time import monotonic, sleep
from typing import Final
from uuid import UUID

import psycopg
from psycopg import sql

from horolog.application.several_logs.place import ONLY, LogPlace
from horolog.domain.errors import InvalidSetting, NotAllowed, SchemaTooNew, StoreUnavailable
from horolog.domain.ids import partition_stream
from horolog.infrastructure.postgres.compatibility import (
    Applied,
    check_admitted,
    check_complete,
    known_schema,
    living_and_older,
    present_migrations,
)
from horolog.infrastructure.postgres.database import SESSION, Connection, Database
from horolog.infrastructure.postgres.migration_files import Migration, migrations
from horolog.infrastructure.postgres.recorded_place import Recorded, check_recorded
from horolog.infrastructure.postgres.retention.ahead import create_months_ahead
from horolog.infrastructure.postgres.roles.applying import refresh

PARTITIONS = 64
"""How many partitions a new namespace gets unless told otherwise; fixed from then on."""

OLDEST_POSTGRES = 140000

LOCK_WAIT: Final = "80ms"
"""How long a migration waits for a table at a time. It is tried again, for ``PATIENCE_S``."""

PATIENCE_S: Final = 300.0
PAUSE_S: Final = 0.2


def migrate(
    database: Database,
    *,
    partitions: int = PARTITIONS,
    grant_to: tuple[str, ...] = (),
    regardless: bool = False,
    place: LogPlace = ONLY,
    set_id: UUID | None = None,
) -> list[Migration]:
    """Brings the schema to this release and returns what was applied (nothing: it was current).

    ``partitions`` counts only for a new namespace. ``grant_to`` names existing roles that get what
    a service needs. ``place`` says which of the namespace's logs this is; ``set_id``, for all but
    the first, is what the first has (:mod:`horolog.infrastructure.postgres.recorded_place`).
    Raises ``InvalidSetting`` where the database is another log than that, ``SchemaTooNew`` for a
    schema of a newer release that this code cannot work with, ``StoreUnavailable``, and
    ``NotAllowed`` while processes live that could not go on with the new schema, unless
    ``regardless``.
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
        _act_as_owner(connection, database)
        _set(connection, "lock_timeout", LOCK_WAIT)
        present = present_migrations(connection, database)
        check_admitted(present, migrations())
        wanted = [migration for migration in migrations() if migration.number not in present]
        if present and wanted and not regardless:
            _refuse_to_strand(connection, database, present, wanted)
        for migration in wanted:
            _patiently(connection, database, migration, fresh=not present)
            applied.append(migration)
        _set(connection, "lock_timeout", SESSION["lock_timeout"])
        _create_namespace(connection, database, partitions, place, set_id)
        create_months_ahead(database, connection)
        refresh(database, connection)
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
        present = present_migrations(connection, database)
    check_admitted(present, migrations())
    check_complete(present, migrations(), database.namespace)


def check_newest(database: Database) -> None:
    """Raises ``SchemaTooNew`` for a schema of a newer release, also where that admits this code:
    rows that this code knows in part only may be changed by it, but not made anew."""
    with database.connection() as connection:
        newest = max(present_migrations(connection, database))
    if newest > known_schema():
        raise SchemaTooNew(
            f"the schema has migration {newest}, this code knows {known_schema()}: read models are"
            " verified and rebuilt by the release of the schema"
        )


def _refuse_to_strand(
    connection: Connection, database: Database, present: Applied, wanted: list[Migration]
) -> None:
    last = max(wanted, key=lambda migration: migration.admits)
    older = living_and_older(connection, database, last.admits, max(present))
    if older:
        raise NotAllowed(
            f"migration {last.number} ({last.name}) leaves nothing usable to code that knows less"
            f" than migration {last.admits}, and such processes live: {', '.join(older)}."
            " Stop them, migrate, and start them as this release; nothing was changed"
        )


def _act_as_owner(connection: Connection, database: Database) -> None:
    """What is made belongs to whom the schema belongs to: functions act with the owner's rights,
    and would not get at the tables of somebody else."""
    row = connection.execute(
        "SELECT o.rolname FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o"
        " ON o.oid = n.nspowner WHERE n.nspname = %s AND o.rolname <> current_user"
        " AND pg_has_role(o.oid, 'MEMBER')",
        (database.namespace,),
    ).fetchone()
    if row is not None:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(row[0])))


def _patiently(
    connection: Connection, database: Database, migration: Migration, *, fresh: bool
) -> None:
    """Applies the migration as soon as its tables can be had within ``LOCK_WAIT``."""
    until = monotonic() + PATIENCE_S
    while True:
        try:
            _apply(connection, database, migration, fresh=fresh)
            return
        except psycopg.errors.LockNotAvailable as error:
            if monotonic() > until:
                raise StoreUnavailable(
                    f"migration {migration.number} ({migration.name}) could not be applied:"
                    " some transaction holds its tables all the time; end it, and migrate again"
                ) from error
            sleep(PAUSE_S)


def _apply(
    connection: Connection, database: Database, migration: Migration, *, fresh: bool
) -> None:
    if migration.online:
        _apply_online(connection, database, migration, fresh=fresh)
        return
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
        _record(connection, database, migration)


def _apply_online(
    connection: Connection, database: Database, migration: Migration, *, fresh: bool
) -> None:
    """Step by step, each a transaction of its own: whoever is killed in between begins again.

    In a ``fresh`` schema, where nobody can be in the way, an index is made at once: concurrently
    it would wait for every other transaction of the database."""
    _set(connection, "statement_timeout", "0")
    try:
        _drop_invalid_indexes(connection, database)
        for step in migration.steps:
            text = step.text.replace(" CONCURRENTLY", "") if fresh else step.text
            statement = database.sql(text)
            if step.telling:
                for (told,) in connection.execute(statement, prepare=False).fetchall():
                    connection.execute(told.encode(), prepare=False)
                continue
            while connection.execute(statement, prepare=False).rowcount > 0 and step.repeated:
                pass
        with connection.transaction():
            _record(connection, database, migration)
    finally:
        _set(connection, "statement_timeout", SESSION["statement_timeout"])


def _set(connection: Connection, name: str, value: str) -> None:
    connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _record(connection: Connection, database: Database, migration: Migration) -> None:
    connection.execute(
        database.sql("ALTER TABLE :schema.migrations ADD COLUMN IF NOT EXISTS admits integer")
    )
    connection.execute(
        database.sql(
            "INSERT INTO :schema.migrations (number, name, digest, admits) VALUES (%s, %s, %s, %s)"
        ),
        (migration.number, migration.name, migration.digest, migration.admits),
    )


def _drop_invalid_indexes(connection: Connection, database: Database) -> None:
    """What a ``CREATE INDEX CONCURRENTLY`` has left that did not come to its end."""
    rows = connection.execute(
        database.sql(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE NOT i.indisvalid AND c.relkind = 'i'"
            " AND c.relnamespace = :literal::regnamespace"
        )
    ).fetchall()
    for (name,) in rows:
        index = sql.Identifier(database.namespace, name)
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))


def _create_namespace(
    connection: Connection,
    database: Database,
    partitions: int,
    place: LogPlace,
    set_id: UUID | None,
) -> None:
    with connection.transaction():
        created = connection.execute(
            database.sql(
                "INSERT INTO :schema.namespace (name, partitions, log, logs, set_id)"
                " VALUES (%s, %s, %s, %s, coalesce(%s, gen_random_uuid()))"
                " ON CONFLICT DO NOTHING RETURNING partitions"
            ),
            (database.namespace, partitions, place.log, place.logs, set_id),
        ).fetchone()
        if created is None:
            recorded = connection.execute(
                database.sql("SELECT log, logs, set_id, partitions FROM :schema.namespace")
            ).fetchone()
            assert recorded is not None
            check_recorded(Recorded(*recorded), place, database.namespace, set_id)
            return
        streams = [partition_stream(database.namespace, n) for n in range(partitions)]
        connection.execute(
            database.sql(
                "INSERT INTO :schema.partitions (partition, stream)"
                " SELECT n - 1, s FROM unnest(%s::uuid[]) WITH ORDINALITY AS t (s, n)"
            ),
            (streams,),
        )
