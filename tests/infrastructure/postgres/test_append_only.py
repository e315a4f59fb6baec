"""Nobody changes an event: a trigger refuses owners, and services lack the privilege altogether."""

from collections.abc import Generator
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from horolog import Every, NotAllowed, Scheduler, StoreUnavailable
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate

CHANGES = [
    "UPDATE :schema.{table} SET state = '\\x7b7d'",
    "DELETE FROM :schema.{table}",
    "TRUNCATE :schema.{table} CASCADE",
]
EVENT_TABLES = ["job_events", "occurrence_events", "occurrence_events_rest"]


@pytest.fixture
def played(database: Database) -> Generator[Scheduler]:
    """A log with events in both tables."""
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        job = scheduler.register("a", schedule=Every(60))
        scheduler.trigger(job.id)
        scheduler.cancel(job.id)
        yield scheduler


@pytest.fixture
def service(database: Database, played: Scheduler) -> Generator[Database]:
    """The database as a role that was granted what a service needs, and owns nothing."""
    role = f"service_{database.namespace}"
    with psycopg.connect(database.url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        migrate(database, grant_to=(role,))
        opened = Database(make_conninfo(database.url, user=role), role[8:])
        yield opened
        opened.close()
        owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.mark.parametrize("change", CHANGES)
def test_the_owner_is_refused_by_a_trigger(
    database: Database, played: Scheduler, change: str
) -> None:
    before = played.log()
    for table in EVENT_TABLES:
        if table == "occurrence_events_rest" and "TRUNCATE" not in change:
            continue  # holds no row here, and a row trigger is asked for rows alone
        with (
            database.session() as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="the log is append-only"),
        ):
            connection.execute(database.sql(change.format(table=table)))
    assert played.log() == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_month_of_occurrences_is_no_way_around_it(
    database: Database, played: Scheduler, change: str
) -> None:
    (months,) = zip(
        *database.query(
            database.sql(
                "SELECT tableoid::regclass::text FROM :schema.occurrence_events GROUP BY 1"
            )
        ),
        strict=True,
    )
    assert months
    for month in months:
        table = str(month).partition(".")[2]
        with (
            database.session() as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="the log is append-only"),
        ):
            connection.execute(database.sql(change.format(table=table)))


@pytest.mark.parametrize("change", CHANGES)
def test_a_service_has_not_even_the_privilege(service: Database, change: str) -> None:
    for table in EVENT_TABLES:
        with (
            psycopg.connect(service.url, autocommit=True) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"),
        ):
            connection.execute(service.sql(change.format(table=table)))


def test_a_service_can_do_what_a_client_needs(service: Database) -> None:
    with Scheduler(service.url, namespace=service.namespace, actor="service") as scheduler:
        job = scheduler.register("a", schedule=Every(60), key="k")
        occurrence = scheduler.trigger(job.id)
        assert scheduler.update(job.id, payload={"n": 1}).version == 3
        assert scheduler.occurrence(occurrence.id).state == "scheduled"
        assert scheduler.cancel(job.id).status == "cancelled"
        with pytest.raises(NotAllowed):
            scheduler.pause(job.id)
        assert {event.actor for event in scheduler.history(job.id)} == {"service"}


def test_a_role_without_the_grant_is_told_so(database: Database, played: Scheduler) -> None:
    role = f"stranger_{database.namespace}"
    with psycopg.connect(database.url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        try:
            url = make_conninfo(database.url, user=role)
            with (
                pytest.raises(StoreUnavailable, match="Postgres refuses: permission denied"),
                Scheduler(url, namespace=database.namespace) as stranger,
            ):
                stranger.job(UUID(int=1))
        finally:
            owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
