"""Where nobody is a superuser, as in managed clouds: the owner of a database makes the roles."""

from collections.abc import Generator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.infrastructure.postgres.roles.test_breaking_out import drop_roles

from horolog import NotAllowed, Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.roles.applying import apply, lacking


@pytest.fixture
def owned(database_url: str, namespace: str) -> Generator[Database]:
    """A schema in the hand of an ordinary role that may create roles."""
    owner = sql.Identifier(f"{namespace}_dba")
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(owner))
        superuser.execute(
            sql.SQL("GRANT CREATE ON DATABASE postgres TO {} WITH GRANT OPTION").format(owner)
        )
    database = Database(make_conninfo(database_url, user=f"{namespace}_dba"), namespace)
    yield database
    database.close()
    drop_roles(database_url, namespace)


def test_the_owner_of_the_schema_makes_the_roles_and_goes_on_migrating(owned: Database) -> None:
    migrate(owned)
    apply(owned, owned.namespace)
    apply(owned, owned.namespace)
    assert lacking(owned) == []
    migrate(owned)
    with Scheduler(owned.url, namespace=owned.namespace) as scheduler:
        assert scheduler.log() == []
        scheduler.limit_queue("default", limit=1)
    rows = owned.query(owned.sql("SELECT nspowner::regrole::text FROM pg_namespace"
                                 " WHERE nspname = :literal"))  # fmt: skip
    assert rows == [(f"{owned.namespace}_owner",)]


def test_who_may_not_make_roles_is_told_who_may(database_url: str, owned: Database) -> None:
    migrate(owned)
    with psycopg.connect(database_url, autocommit=True) as superuser:
        name = sql.Identifier(f"{owned.namespace}_dba")
        superuser.execute(sql.SQL("ALTER ROLE {} NOCREATEROLE").format(name))
    with pytest.raises(NotAllowed, match="as a superuser"):
        apply(owned, owned.namespace)
    assert owned.query(owned.sql("SELECT * FROM :schema.roles")) == []
