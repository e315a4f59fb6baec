"""The inbox is drained exactly once: by several at a time, over crashes, past rows that cannot be
carried out."""

from __future__ import annotations

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.infrastructure.conftest import CuttingProxy

from horolog import Every, Scheduler, StoreUnavailable
from horolog.application.decision import Decision
from horolog.application.inbox import draining as inbox
from horolog.application.log import Appended, Fences
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.inbox import TakingLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.interface.wiring import draining

ALL = range(64)


@pytest.fixture
def scheduler(database: Database) -> Generator[Scheduler]:
    with Scheduler(database.url, namespace=database.namespace, actor="ann") as client:
        yield client


def drains(database: Database) -> inbox.Draining:
    return draining(database, PostgresStates(database), "scanner")


def give(scheduler: Scheduler, count: int, **options: Any) -> list[Any]:
    with psycopg.connect(scheduler.settings.database_url()) as connection:
        return [
            scheduler.register("a", schedule=Every(60), connection=connection, **options)
            for _ in range(count)
        ]


def count(database: Database, what: str) -> int:
    return database.query(database.sql(f"SELECT count(*) FROM {what}"))[0][0]


def test_two_who_drain_at_once_append_each_command_once(
    scheduler: Scheduler, database: Database
) -> None:
    jobs = give(scheduler, 20)
    with psycopg.connect(database.url) as connection:
        for job in jobs:
            scheduler.trigger(job.id, connection=connection)
    start = Barrier(4)

    def drain(_: int) -> None:
        drainer = drains(database)
        start.wait()
        while drainer.drain(ALL):
            pass

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(drain, range(4)))
    assert count(database, ":schema.job_events WHERE topic = 'job.registered.1'") == 20
    assert count(database, ":schema.job_events WHERE topic = 'job.triggered.1'") == 20
    assert count(database, ":schema.next_runs WHERE kind = 'trigger'") == 20
    assert count(database, ":schema.inbox") == 0


def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_made_twice(
    scheduler: Scheduler, database: Database, proxy: CuttingProxy
) -> None:
    (job,) = give(scheduler, 1)
    behind = Database(proxy.url, database.namespace)
    drainer = drains(behind)
    # Each answer of the way is cut once: to BEGIN, to the taking, to the append, to COMMIT.
    for answers in range(9):
        with psycopg.connect(database.url) as connection:
            scheduler.trigger(job.id, request_id=str(answers), connection=connection)
        proxy.cut_an_answer(after=answers)
        try:
            drainer.drain(ALL)
        except StoreUnavailable:
            assert proxy.cuts
        while drains(database).drain(ALL):
            pass
    behind.close()
    assert proxy.cuts >= 5
    assert count(database, ":schema.job_events WHERE topic = 'job.triggered.1'") == 9
    assert count(database, ":schema.inbox") == 0


def test_who_dies_between_the_taking_and_the_append_has_done_nothing(
    scheduler: Scheduler, database: Database
) -> None:
    (job,) = give(scheduler, 1)
    dying = psycopg.connect(database.url)
    taken = dying.execute(database.sql("DELETE FROM :schema.inbox"))
    assert taken.rowcount == 1
    dying.close()
    assert drains(database).drain(ALL) == 1
    assert scheduler.job(job.id).version == 1


def test_a_row_that_cannot_be_carried_out_is_set_aside_and_stops_no_other(
    scheduler: Scheduler, database: Database
) -> None:
    (before,) = give(scheduler, 1)
    unreadable: list[object] = [{"command": "explode"}, {"command": "pause"}, [], "x"]
    # Postgres takes for JSON what Python cannot read.
    for document in [*map(json.dumps, unreadable), "[" * 3_000 + "]" * 3_000]:
        database.query(
            database.sql(
                "INSERT INTO :schema.inbox (partition, job_id, birth, document)"
                " VALUES (0, gen_random_uuid(), false, %s)"
            ),
            (document,),
        )
    (after,) = give(scheduler, 1)
    assert drains(database).drain(ALL) == 7
    assert scheduler.job(before.id).status == scheduler.job(after.id).status == "active"
    assert count(database, ":schema.inbox WHERE refused_at IS NOT NULL AND error <> ''") == 5
    assert drains(database).drain(ALL) == 0
    counted = database.query(
        database.sql("SELECT value FROM :schema.counters WHERE name = 'inbox_refused'")
    )
    assert counted == [(5,)]


def test_registrations_are_appended_together(
    scheduler: Scheduler, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends: list[int] = []
    append = TakingLog.append

    def counted(
        self: TakingLog, decisions: list[Decision], fences: Fences | None = None
    ) -> Appended:
        appends.append(len(decisions))
        return append(self, decisions, fences)

    monkeypatch.setattr(TakingLog, "append", counted)
    jobs = give(scheduler, 30)
    assert drains(database).drain(ALL) == 30
    assert appends == [30]
    assert {job.version for job in scheduler.jobs()} == {1}
    assert {job.id for job in scheduler.jobs()} == {job.id for job in jobs}


def test_a_drainer_reads_only_what_it_is_asked_for(
    scheduler: Scheduler, database: Database
) -> None:
    give(scheduler, 10)
    drainer = drains(database)
    assert sum(drainer.drain([partition]) for partition in ALL) == 10


def test_a_service_without_rights_of_its_own_gives_and_drains(
    scheduler: Scheduler, database: Database, namespace: str
) -> None:
    role = f"{namespace}_app"
    with psycopg.connect(database.url, autocommit=True) as owner:
        name = sql.Identifier(role)
        owner.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOSUPERUSER").format(name))
    migrate(database, grant_to=(role,))
    try:
        with psycopg.connect(database.url) as connection:
            connection.execute(sql.SQL("SET ROLE {}").format(name))
            connection.execute("CREATE TEMP TABLE orders (id int)")
            job = scheduler.register("a", schedule=Every(60), key="k", connection=connection)
            scheduler.pause(job.id, connection=connection)
        serving = Database(
            f"{database.url}{'&' if '?' in database.url else '?'}options=-c%20role%3D{role}",
            namespace,
        )
        assert drains(serving).drain(ALL) == 2
        serving.close()
        assert scheduler.job(job.id).status == "paused"
    finally:
        with psycopg.connect(database.url, autocommit=True) as owner:
            owner.execute(sql.SQL("DROP OWNED BY {}").format(name))
            owner.execute(sql.SQL("DROP ROLE {}").format(name))
