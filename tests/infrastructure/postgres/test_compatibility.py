"""Two releases on one schema: each side says how far it goes, and what cannot be is refused."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from horolog import Every, NotAllowed, Scheduler, SchemaMissing, SchemaTooNew
from horolog.infrastructure.postgres import compatibility, migrate, migration_files
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migration_files import Migration
from horolog.infrastructure.postgres.presence import PostgresPresence
from horolog.interface.projections import Projections

PRESENT = migration_files.migrations()
LAST = PRESENT[-1].number


@pytest.fixture
def database(database_url: str, namespace: str) -> Generator[Database]:
    """A namespace of this release."""
    opened = Database(database_url, namespace)
    migrate.migrate(opened, partitions=1)
    yield opened
    opened.close()


@contextmanager
def release(monkeypatch: pytest.MonkeyPatch, *more: str) -> Generator[None]:
    """As code that brings further migrations with these texts."""
    found = [*PRESENT, *(Migration(LAST + n, f"m{n}", text) for n, text in enumerate(more, 1))]
    with monkeypatch.context() as patched:
        for module in (migrate, migration_files, compatibility):
            patched.setattr(module, "migrations", lambda: found)
        yield


def test_older_code_goes_on_with_a_schema_that_admits_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = f"-- horolog: admits {LAST}\nALTER TABLE :schema.jobs ADD COLUMN colour text;"
    with release(monkeypatch, newer):
        assert [m.number for m in migrate.migrate(database)] == [LAST + 1]
    migrate.check_schema(database)
    assert migrate.migrate(database) == []
    with pytest.raises(SchemaTooNew, match="rebuilt by the release of the schema"):
        Projections(database.url, namespace=database.namespace)
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        assert scheduler.register("a", schedule=Every(60)).version == 1


def test_older_code_is_refused_by_a_schema_that_does_not_admit_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitting, breaking = f"-- horolog: admits {LAST}\nSELECT 1", "SELECT 1"
    with release(monkeypatch, breaking, admitting.replace(str(LAST), str(LAST + 1))):
        migrate.migrate(database)
    for refused in (migrate.check_schema, migrate.migrate):
        with pytest.raises(SchemaTooNew, match=f"migration {LAST + 1}, this code knows {LAST}.*"):
            refused(database)


def test_newer_code_works_before_what_it_can_do_without_and_not_before_the_rest(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with release(monkeypatch, "-- horolog: dispensable\nSELECT 1"):
        migrate.check_schema(database)
    with (
        release(monkeypatch, "-- horolog: dispensable\nSELECT 1", "SELECT 1"),
        pytest.raises(SchemaMissing, match="missing: m2"),
    ):
        migrate.check_schema(database)


def test_a_migration_that_would_strand_living_processes_names_them_and_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = PostgresPresence(database, "worker/here-1", "worker")
    worker.announce({}, 30.0)
    before = database.query(database.sql("SELECT * FROM :schema.migrations"))
    with release(monkeypatch, f"-- horolog: admits {LAST}\nSELECT 1", "SELECT 1"):
        with pytest.raises(NotAllowed, match=r"migration .* such processes live: worker worker/he"):
            migrate.migrate(database)
        assert database.query(database.sql("SELECT * FROM :schema.migrations")) == before
        worker.leave()
        assert len(migrate.migrate(database)) == 2


def test_it_is_applied_regardless_where_somebody_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresPresence(database, "worker/here-1", "worker").announce({}, 30.0)
    with release(monkeypatch, "SELECT 1"):
        assert len(migrate.migrate(database, regardless=True)) == 1


ONLINE = f"""-- horolog: admits {LAST}
-- horolog: online
-- step
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_late ON :schema.jobs (changed_at)
-- step until none
UPDATE :schema.jobs SET owner = 'nobody'
WHERE id IN (SELECT id FROM :schema.jobs WHERE owner IS NULL LIMIT 3)
"""


def test_an_online_migration_goes_in_steps_and_batches(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        for _ in range(8):
            scheduler.register("a", schedule=Every(60))
    with release(monkeypatch, ONLINE):
        migrate.migrate(database)
    owned = "SELECT count(*) FROM :schema.jobs WHERE owner = 'nobody'"
    assert database.query(database.sql(owned)) == [(8,)]
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = ':schema.jobs_late'::regclass"
    name = f'"{database.namespace}"'
    assert database.query(database.sql(valid.replace(":schema", name))) == [(True,)]


def test_an_online_migration_indexes_each_partition_by_itself(database: Database) -> None:
    """A partitioned table is never locked for as long as all of its rows take."""
    index = next(m for m in migration_files.migrations() if m.name == "late_success_index")
    database.query(
        database.sql("DELETE FROM :schema.migrations WHERE number = %s RETURNING 1"),
        (index.number,),
    )
    with database.session() as connection:
        connection.execute(database.sql("DROP INDEX :schema.executions_late_successes"))
    assert [m.number for m in migrate.migrate(database)] == [index.number]
    parent = database.sql(
        "SELECT x.indisvalid, (SELECT count(*) FROM pg_inherits WHERE inhparent = x.indrelid),"
        " (SELECT count(*) FROM pg_inherits WHERE inhparent = x.indexrelid) FROM pg_index x"
        " WHERE x.indexrelid = format('%I.executions_late_successes', :literal)::regclass"
    )
    ((valid, months, indexed),) = database.query(parent)
    assert valid
    assert indexed == months > 1


def test_an_online_migration_that_was_cut_off_begins_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = ONLINE + "-- step\nSELECT 1 / 0"
    with release(monkeypatch, broken), pytest.raises(Exception, match="division by zero"):
        migrate.migrate(database)
    index = f'"{database.namespace}".jobs_late'
    # As a build that was killed leaves it.
    database.query(
        database.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass"),
        (index,),
    )
    with release(monkeypatch, ONLINE):
        assert [m.number for m in migrate.migrate(database)] == [LAST + 1]
    valid = database.sql("SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass")
    assert database.query(valid, (index,)) == [(True,)]


def test_a_migration_waits_for_a_table_without_making_others_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes behind a waiting exclusive lock waits too: so it does not wait long at a time."""
    newer = f"-- horolog: admits {LAST}\nALTER TABLE :schema.jobs ADD COLUMN colour text;"
    monkeypatch.setattr(migrate, "PAUSE_S", 0.05)
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        with release(monkeypatch, newer):
            upgrading = threading.Thread(target=migrate.migrate, args=(database,))
            with database.session() as reader, reader.transaction():
                reader.execute(database.sql("SELECT FROM :schema.jobs"))
                upgrading.start()
                for _ in range(20):  # each behind the migration's lock at times
                    scheduler.register("a", schedule=Every(60))
                assert upgrading.is_alive()
            upgrading.join(30)
        assert not upgrading.is_alive()
        assert len(scheduler.jobs(limit=100)) == 20


def test_a_definition_of_a_newer_release_is_named_and_left_as_it_is(database: Database) -> None:
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        job, other = (scheduler.register("a", schedule=Every(60)) for _ in range(2))
        database.query(
            database.sql(
                "UPDATE :schema.jobs SET definition = jsonb_set(definition::jsonb, '{colour}',"
                " '\"red\"')::json WHERE id = %s"
            ),
            (job.id,),
        )
        with pytest.raises(Exception, match="was it written by a newer one"):
            scheduler.pause(job.id)
        assert scheduler.pause(other.id).status == "paused"
        assert len(scheduler.history(job.id)) == 1
