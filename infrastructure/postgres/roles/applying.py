"""Making the roles, keeping them right over migrations, and seeing what they lack."""

from itertools import starmap

import psycopg
from psycopg import sql

from horolog.domain.errors import NotAllowed
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.roles.kinds import GRANTS, KINDS, OWNER, Grant, Kind, topics
from horolog.infrastructure.postgres.roles.statements import (
    checked_prefix,
    granting,
    role_name,
    statements,
)

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"

# A function is asked about by its number: its name has no short form with arguments.
_LACKING = """
    SELECT w.role, w.what
    FROM unnest(%(roles)s::text[], %(privileges)s::text[], %(kinds)s::text[], %(names)s::text[],
                %(columns)s::text[], %(whats)s::text[])
         AS w (role, privilege, kind, name, columns, what)
    JOIN pg_catalog.pg_roles r ON r.rolname = w.role
    LEFT JOIN pg_catalog.pg_class c ON w.kind <> 'FUNCTION' AND c.relname = w.name
                                   AND c.relnamespace = :literal::regnamespace
    LEFT JOIN pg_catalog.pg_proc p ON w.kind = 'FUNCTION' AND p.proname = w.name
                                  AND p.pronamespace = :literal::regnamespace
    WHERE NOT coalesce(CASE
        WHEN w.kind = 'FUNCTION' THEN has_function_privilege(r.oid, p.oid, w.privilege)
        WHEN w.kind = 'SEQUENCE' THEN has_sequence_privilege(r.oid, c.oid, w.privilege)
        WHEN w.columns = '' THEN has_table_privilege(r.oid, c.oid, w.privilege)
        ELSE (SELECT bool_and(has_column_privilege(r.oid, c.oid, k, w.privilege))
              FROM unnest(string_to_array(w.columns, ',')) AS k) END, false)
       OR NOT has_schema_privilege(r.oid, :literal, 'USAGE')
    ORDER BY w.role, w.what LIMIT 200
"""

_INSTALLED = "SELECT k.kind, k.role FROM :schema.roles k ORDER BY k.kind"

_MISSING_ROLES = """
    SELECT k.role FROM :schema.roles k
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = k.role)
"""

_SAID = "SELECT kind, array_agg(topic) FROM :schema.may_append GROUP BY kind"


def script(database: Database, prefix: str) -> list[str]:
    """The statements as text, to be run as one transaction; nothing connects."""
    return [
        "BEGIN",
        *(one.as_string().strip() for one in statements(database, checked_prefix(prefix))),
        "COMMIT",
    ]


def apply(database: Database, prefix: str) -> None:
    """Makes the roles and grants to them, all or nothing; a second time changes nothing.

    Raises ``NotAllowed`` where the connection may not create roles or does not own the schema,
    ``StoreUnavailable``, and ``SchemaMissing`` before the migration of this release.
    """
    checked_prefix(prefix)
    with database.session() as connection:
        try:
            with connection.transaction():
                connection.execute(_LOCK, (f"{database.namespace}/migrate",))
                for one in statements(database, prefix):
                    connection.execute(one, prepare=False)
        except psycopg.errors.InsufficientPrivilege as error:
            raise NotAllowed(
                f"Postgres refuses: {error.diag.message_primary}: make the roles as a superuser, or"
                " as the owner of the schema with CREATEROLE; nothing was changed"
            ) from error


def refresh(database: Database, connection: Connection) -> None:
    """After a migration: what is there is granted to whom `horolog roles` has made, if it has."""
    installed = connection.execute(database.sql(_INSTALLED)).fetchall()
    prefixes: dict[Kind, str] = {
        kind: role.removesuffix(f"_{kind}") for kind, role in installed if kind in KINDS
    }
    if not prefixes:
        return
    with connection.transaction():
        connection.execute(_LOCK, (f"{database.namespace}/migrate",))
        for one in granting(database, prefixes):
            connection.execute(one, prepare=False)


def lacking(database: Database) -> list[str]:
    """What the roles of `horolog roles` lack, in words; nothing where there are none."""
    installed: dict[Kind, str] = dict(database.query(database.sql(_INSTALLED)))
    if not installed:
        return []
    found = [f"there is no role {role}" for (role,) in database.query(database.sql(_MISSING_ROLES))]
    wanted = [(role, grant) for kind, role in installed.items() for grant in GRANTS.get(kind, ())]
    params = {
        "roles": [role for role, _ in wanted],
        "privileges": [grant.privilege for _, grant in wanted],
        "kinds": [grant.on for _, grant in wanted],
        "names": [grant.name for _, grant in wanted],
        "columns": [",".join(grant.columns) for _, grant in wanted],
        "whats": [_words(grant) for _, grant in wanted],
    }
    rows = database.query(database.sql(_LACKING), params)
    found += starmap("{} lacks {}".format, rows)
    said = dict(database.query(database.sql(_SAID)))
    return found + [
        f"{role} may not append just what this release says"
        for kind, role in installed.items()
        if kind in KINDS and sorted(said.get(kind, [])) != topics(kind)
    ]


def joining(prefix: str) -> list[str]:
    """How logins are made members, as SQL to be filled in."""
    lines = [
        sql.SQL("CREATE ROLE my_{0} LOGIN IN ROLE {1}")
        .format(sql.SQL(kind), sql.Identifier(role_name(prefix, kind)))
        .as_string()
        for kind in KINDS
    ]
    owner = sql.Identifier(role_name(prefix, OWNER)).as_string()
    return [*lines, f"GRANT {owner} TO my_deployer", f"ALTER ROLE my_deployer SET role = {owner}"]


def _words(grant: Grant) -> str:
    columns = f" ({', '.join(grant.columns)})" if grant.columns else ""
    return f"{grant.privilege} on {grant.on.lower()} {grant.name}{columns}"
