"""The SQL that makes the roles of a namespace: idempotent, and the same whether printed or run.

Group roles that nobody logs in as; a login is made a member of those that it needs. Roles are of
the whole server: two databases of one server whose namespaces are called alike share them, unless
they are given different prefixes.
"""

from collections.abc import Iterator

from psycopg import sql

from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.postgres.database import NAMESPACE_PATTERN, Database
from horolog.infrastructure.postgres.roles.kinds import GRANTS, KINDS, OWNER, Grant, Kind, topics

_CREATE = """
DO $do$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {name}) THEN
        CREATE ROLE {role} NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $do$"""

# Who hands the schema over stays a member, unless it may do anything anyway.
_BECOME_OWNER = """
DO $do$ BEGIN
    IF NOT pg_has_role({name}, 'USAGE') THEN
        GRANT {role} TO CURRENT_USER;
    END IF;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO {role}', current_database());
END $do$"""

# Sequences of columns follow their tables, and partitions are tables like others.
_OWN = """
DO $do$ DECLARE
    one text;
BEGIN
    FOR one IN
        SELECT format('ALTER SCHEMA %I', n.nspname) FROM pg_catalog.pg_namespace n
        WHERE n.nspname = {schema} AND n.nspowner <> {name}::regrole
        UNION ALL
        SELECT format('ALTER TABLE %I.%I', n.nspname, c.relname)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = {schema} AND c.relkind IN ('r', 'p', 'v', 'S')
          AND c.relowner <> {name}::regrole
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                            AND d.deptype = 'i' AND c.relkind = 'S')
        UNION ALL
        SELECT format('ALTER ROUTINE %s', p.oid::regprocedure)
        FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = {schema} AND p.proowner <> {name}::regrole
    LOOP
        EXECUTE one || ' OWNER TO {role}';
    END LOOP;
END $do$"""


def checked_prefix(prefix: str) -> str:
    """The prefix, or ``InvalidSetting``: the names of roles begin with it."""
    if not NAMESPACE_PATTERN.fullmatch(prefix) or prefix.startswith("pg_"):
        raise InvalidSetting(
            f"roles cannot begin with {prefix!r}: a prefix takes lower-case letters, digits and _,"
            " at most 40, and does not begin with pg_"
        )
    return prefix


def role_name(prefix: str, kind: str) -> str:
    return f"{prefix}_{kind}"


def statements(database: Database, prefix: str) -> Iterator[sql.SQL | sql.Composed]:
    """Everything, for one transaction of whoever owns the schema and may create roles."""
    for kind in (*KINDS, OWNER):
        yield _filled(_CREATE, database, role_name(prefix, kind))
    owner = role_name(prefix, OWNER)
    yield _filled(_BECOME_OWNER, database, owner)
    yield sql.SQL("SET LOCAL lock_timeout = '2s'")
    yield _filled(_OWN, database, owner)
    yield from granting(database, dict.fromkeys(KINDS, prefix))


def granting(database: Database, prefixes: dict[Kind, str]) -> Iterator[sql.SQL | sql.Composed]:
    """What each kind has, and nothing else of this schema, whatever it had before."""
    yield database.sql("DELETE FROM :schema.may_append")
    yield database.sql("DELETE FROM :schema.roles")
    for kind, prefix in prefixes.items():
        role = sql.Identifier(role_name(prefix, kind))
        for things in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            yield _on(database, f"REVOKE ALL ON ALL {things} IN SCHEMA :schema FROM ", role)
        yield _on(database, "GRANT USAGE ON SCHEMA :schema TO ", role)
        for grant in GRANTS[kind]:
            yield _on(database, f"GRANT {_privilege(grant)} TO ", role)
        name = sql.Literal(role_name(prefix, kind))
        yield database.sql("INSERT INTO :schema.roles (kind, role) VALUES ") + sql.SQL(
            "({}, {})"
        ).format(kind, name)
        if said := topics(kind):
            rows = sql.SQL(", ").join(sql.SQL("({}, {})").format(kind, topic) for topic in said)
            yield database.sql("INSERT INTO :schema.may_append (kind, topic) VALUES ") + rows


def _privilege(grant: Grant) -> str:
    columns = f" ({', '.join(grant.columns)})" if grant.columns else ""
    return f"{grant.privilege}{columns} ON {grant.on} :schema.{grant.name}"


def _on(database: Database, text: str, role: sql.Identifier) -> sql.Composed:
    return database.sql(text) + role


def _filled(text: str, database: Database, role: str) -> sql.Composed:
    # `role` goes through format() or EXECUTE: it is checked, and needs no more than its quotes.
    return sql.SQL(text).format(  # pyright: ignore[reportArgumentType]
        schema=sql.Literal(database.namespace),
        name=sql.Literal(role),
        role=sql.Identifier(role),
    )
