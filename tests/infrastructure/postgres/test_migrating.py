"""Migrations: from nothing, at once from many places, and a refusal where that cannot be."""

import subprocess
import sys
from collections.abc import Generator

import psycopg
import pytest

from horolog import (
    Every,
    InvalidSetting,
    Scheduler,
    SchemaMissing,
    SchemaTooNew,
)
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import check_schema, migrate, migrations

PROGRAM = """
import sys
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
database = Database(sys.argv[1], sys.argv[2])
sys.stdin.readline()
print(len(migrate(database)))
"""


@pytest.fixture
def bare(database_url: str, namespace: str) -> Generator[Database]:
    """A namespace that nobody has migrated."""
    opened = Database(database_url, namespace)
    yield opened
    opened.close()


def test_from_nothing_everything_is_applied_and_then_nothing_is_left(bare: Database) -> None:
    applied = migrate(bare)
    assert [m.number for m in applied] == list(range(1, len(migrations()) + 1))
    assert migrate(bare) == []
    check_schema(bare)


def test_many_processes_at_once_apply_each_migration_once(bare: Database) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, bare.url, bare.namespace],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:  # all of them have imported what they need by now, or nearly so
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    applied: list[int] = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        applied.append(int(out))
    assert sum(applied) == len(migrations())
    assert len(applied) == 8
    with Scheduler(bare.url, namespace=bare.namespace) as scheduler:
        assert scheduler.register("a", schedule=Every(60)).version == 1


def test_the_number_of_partitions_is_fixed_at_the_beginning(bare: Database) -> None:
    migrate(bare, partitions=4)
    migrate(bare, partitions=64)
    with Scheduler(bare.url, namespace=bare.namespace) as scheduler:
        jobs = [scheduler.register("a", schedule=Every(60)) for _ in range(40)]
    assert {job.partition for job in jobs} == set(range(4))
    for wrong in (0, 1025):
        with pytest.raises(InvalidSetting, match=f"partitions={wrong}"):
            migrate(bare, partitions=wrong)


def test_a_database_without_the_schema_says_what_to_run(bare: Database) -> None:
    with (
        pytest.raises(SchemaMissing, match="run `horolog migrate`"),
        Scheduler(bare.url, namespace=bare.namespace),
    ):
        pass


def test_a_schema_that_is_not_complete_says_what_to_run(bare: Database) -> None:
    migrate(bare)
    bare.query(bare.sql("DELETE FROM :schema.migrations WHERE number = 3"))
    with pytest.raises(SchemaMissing, match=r"an older schema \(missing: .*run `horolog migrate`"):
        check_schema(bare)


def test_a_schema_of_a_newer_release_is_refused_with_nothing_touched(bare: Database) -> None:
    migrate(bare)
    newer = len(migrations()) + 1
    bare.query(
        bare.sql("INSERT INTO :schema.migrations (number, name, digest) VALUES (%s, 'x', 'y')"),
        (newer,),
    )
    for attempt in (
        lambda: check_schema(bare),
        lambda: migrate(bare),
        lambda: Scheduler(bare.url, namespace=bare.namespace).register("a", schedule=Every(60)),
    ):
        with pytest.raises(SchemaTooNew, match=f"migration {newer}.*upgrade horolog"):
            attempt()
    assert bare.query(bare.sql("SELECT count(*) FROM :schema.job_events")) == [(0,)]


def test_a_migration_whose_text_was_changed_is_noticed(bare: Database) -> None:
    migrate(bare)
    bare.query(bare.sql("UPDATE :schema.migrations SET digest = 'other' WHERE number = 1"))
    with pytest.raises(SchemaTooNew, match=r"migration 1 .* with another text"):
        check_schema(bare)


def test_a_migration_that_fails_leaves_nothing_of_itself(
    bare: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [
        m if m.number < 3 else type(m)(3, "broken", m.text + "; SELECT 1 / 0;")
        for m in migrations()
    ]
    with monkeypatch.context() as patched:
        patched.setattr("horolog.infrastructure.postgres.migrate.migrations", lambda: broken)
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(bare)
    assert [m.number for m in migrate(bare)] == list(range(3, len(migrations()) + 1))


def test_namespaces_of_one_database_do_not_meet(bare: Database, database_url: str) -> None:
    migrate(bare)
    other = Database(database_url, f"{bare.namespace}_b")
    migrate(other)
    with (
        Scheduler(bare.url, namespace=bare.namespace) as one,
        Scheduler(other.url, namespace=other.namespace) as two,
    ):
        job, same_key = (s.register("a", schedule=Every(60), key="k") for s in (one, two))
        assert job.id != same_key.id
        assert len(one.log()) == len(two.log()) == 1
    other.close()


@pytest.mark.parametrize("name", ["Invoices", "9lives", "a-b", "", "x" * 41, 'x"; DROP'])
def test_a_namespace_that_cannot_be_one_is_refused(database_url: str, name: str) -> None:
    with pytest.raises(InvalidSetting, match=r"namespace .* cannot be used"):
        Database(database_url, name)
