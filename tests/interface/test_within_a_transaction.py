"""Commands given in the client's own transaction: with it, or not at all."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from tests.interface.conftest import Stage

from horolog import (
    AsyncScheduler,
    Every,
    InvalidSchedule,
    InvalidSetting,
    KeyConflict,
    NotAllowed,
    Once,
    Scheduler,
    SchemaMissing,
    UnknownJob,
)
from horolog.infrastructure.postgres.database import Database


@pytest.fixture
def connection(database: Database) -> Generator[psycopg.Connection[Any]]:
    """The client's own connection, with a transaction that begins by itself."""
    with psycopg.connect(database.url) as opened:
        yield opened


def waiting(database: Database) -> int:
    return database.query(database.sql("SELECT count(*) FROM :schema.inbox"))[0][0]


def test_a_commit_registers_what_was_returned_before_it(
    scheduler: Scheduler, connection: psycopg.Connection[Any], stage: Stage
) -> None:
    before = stage.events()
    job = scheduler.register(
        "a", schedule=Every(60), payload={"n": 1}, key="k", reason="order 7", connection=connection
    )
    assert (job.status, job.key, job.version) == ("active", "k", 1)
    with pytest.raises(UnknownJob):
        scheduler.job(job.id)
    assert stage.events() == before
    connection.commit()
    assert scheduler.job(job.id) == job
    assert scheduler.job("k").id == job.id
    (event,) = scheduler.history(job.id)
    assert (event.actor, event.reason, event.correlation is not None) == ("ann", "order 7", True)


def test_a_rollback_leaves_nothing(
    scheduler: Scheduler, connection: psycopg.Connection[Any], stage: Stage, database: Database
) -> None:
    before = stage.events()
    job = scheduler.register("a", schedule=Every(60), key="k", connection=connection)
    connection.rollback()
    with pytest.raises(UnknownJob):
        scheduler.job(job.id)
    with pytest.raises(UnknownJob):
        scheduler.job("k")
    assert (stage.events(), waiting(database)) == (before, 0)


def test_a_savepoint_that_is_taken_back_takes_its_commands_with_it(
    scheduler: Scheduler, connection: psycopg.Connection[Any]
) -> None:
    kept = scheduler.register("a", schedule=Every(60), connection=connection)
    with connection.transaction(force_rollback=True):
        gone = scheduler.register("a", schedule=Every(60), connection=connection)
    connection.commit()
    assert scheduler.job(kept.id).status == "active"
    with pytest.raises(UnknownJob):
        scheduler.job(gone.id)


def test_an_open_transaction_holds_up_nobody(
    scheduler: Scheduler, connection: psycopg.Connection[Any]
) -> None:
    scheduler.register("a", schedule=Every(60), connection=connection)
    connection.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
    other = scheduler.register("b", schedule=Every(60))
    assert scheduler.trigger(other.id).state == "scheduled"
    locks = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
    ).fetchone()
    assert locks == (0,)


def test_every_command_may_follow_within_the_same_transaction(
    scheduler: Scheduler, connection: psycopg.Connection[Any], stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(60), connection=connection)
    run = scheduler.trigger(job.id, request_id="r", reason="now", connection=connection)
    assert scheduler.trigger(job.id, request_id="r", connection=connection).id == run.id
    scheduler.update(job.id, payload={"n": 2}, priority=3, connection=connection)
    assert scheduler.pause(job.id, connection=connection).status == "paused"
    assert scheduler.resume(job.id, connection=connection).status == "active"
    later = scheduler.reschedule(job.id, Every(90), connection=connection)
    assert scheduler.register("b", schedule=Every(60), key="b", connection=connection).key == "b"
    assert scheduler.cancel(job.id, connection=connection).version == later.version + 1
    with pytest.raises(NotAllowed, match="cancelled"):
        scheduler.trigger(job.id, connection=connection)
    connection.commit()
    found = scheduler.job(job.id)
    assert (found.status, found.payload, found.version) == (
        "cancelled",
        {"n": 2},
        later.version + 1,
    )
    assert [event.topic.split(".")[1] for event in scheduler.history(job.id)] == [
        "registered", "triggered", "payload_changed", "policies_changed", "paused", "resumed",
        "rescheduled", "cancelled",
    ]  # fmt: skip
    assert scheduler.occurrence(run.id).state == "skipped"


def test_a_trigger_orders_the_run_that_it_returned(
    scheduler: Scheduler, connection: psycopg.Connection[Any], stage: Stage
) -> None:
    job = scheduler.register("a", schedule=Every(3600))
    run = scheduler.trigger(job.id, connection=connection)
    # What happens to the job meanwhile does not make the order stale.
    scheduler.update(job.id, priority=5)
    connection.commit()
    scheduler.update(job.id, priority=6, connection=connection)
    connection.commit()
    drain(stage.database)
    found = scheduler.occurrence(run.id)
    assert (found.state, found.kind, found.fire_time) == ("scheduled", "trigger", run.fire_time)
    assert scheduler.trigger(job.id, at=run.fire_time, request_id="x").id != run.id


def drain(database: Database) -> int:
    from horolog.infrastructure.postgres.states import PostgresStates
    from horolog.interface.wiring import draining

    return draining(database, PostgresStates(database), "scanner").drain(range(64))


def test_what_is_refused_is_raised_at_the_call(
    scheduler: Scheduler, connection: psycopg.Connection[Any], database: Database
) -> None:
    scheduler.register("a", schedule=Every(60), key="k")
    with pytest.raises(KeyConflict, match="replace=True"):
        scheduler.register("a", schedule=Every(61), key="k", connection=connection)
    with pytest.raises(InvalidSchedule):
        scheduler.register("a", schedule="* * * * *", connection=connection)  # type: ignore[arg-type]
    with pytest.raises(UnknownJob):
        scheduler.trigger(UUID(int=7), connection=connection)
    assert connection.execute("SELECT 1").fetchone() == (1,)  # the transaction goes on
    same = scheduler.register("a", schedule=Every(60), key="k", connection=connection)
    assert same.version == 1
    connection.commit()
    assert waiting(database) == 0


def test_two_transactions_that_register_one_key_see_each_other(
    scheduler: Scheduler, database: Database
) -> None:
    with psycopg.connect(database.url) as one, psycopg.connect(database.url) as two:
        first = scheduler.register("a", schedule=Every(60), key="k", connection=one)
        two.execute("SET LOCAL lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            scheduler.register("a", schedule=Every(61), key="k", connection=two)
        two.rollback()
        one.commit()
        with pytest.raises(KeyConflict):
            scheduler.register("a", schedule=Every(61), key="k", connection=two)
        assert scheduler.register("a", schedule=Every(60), key="k", connection=two).id == first.id


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_any_isolation_level_will_do(
    scheduler: Scheduler,
    connection: psycopg.Connection[Any],
    stage: Stage,
    isolation: LiteralString,
) -> None:
    connection.execute(sql.SQL("SET TRANSACTION ISOLATION LEVEL {}").format(sql.SQL(isolation)))
    assert connection.execute("SELECT 1").fetchone()
    scheduler.register("b", schedule=Every(60))  # the log goes on beside the old snapshot
    job = scheduler.register("a", schedule=Every(60), key="k", connection=connection)
    assert scheduler.trigger(job.id, connection=connection).state == "scheduled"
    connection.commit()
    assert scheduler.job(job.id).version == 2
    assert verify(stage.database)


def verify(database: Database) -> bool:
    """The hash chain holds, whatever snapshot the client had."""
    rows = database.query(
        database.sql(
            "SELECT bool_and(c.digest = sha256(coalesce(c.before, ''::bytea)"
            " || int8send(c.position_from) || int8send(c.position_to) || int4send(c.events)"
            " || c.content)) FROM (SELECT *, lag(digest) OVER (ORDER BY position_to) AS before"
            " FROM :schema.chain) c"
        )
    )
    return rows == [(True,)]


def test_a_registration_may_replace_what_is_there_and_what_is_about_to_be(
    scheduler: Scheduler, connection: psycopg.Connection[Any]
) -> None:
    there = scheduler.register("a", schedule=Every(60), key="there")
    options: dict[str, Any] = {"replace": True, "connection": connection}
    assert scheduler.register("a", schedule=Every(61), key="there", **options).version == 2
    assert scheduler.register("a", schedule=Every(62), key="there", **options).version == 3
    scheduler.register("a", schedule=Every(60), key="new", **options)
    scheduler.register("a", schedule=Every(63), key="new", **options)
    connection.commit()
    replaced = scheduler.job("new").schedule
    assert isinstance(replaced, Every)
    assert replaced.seconds == 63
    scheduler.trigger(there.id, connection=connection)
    connection.commit()
    drain(Database(scheduler.settings.database_url(), scheduler.settings.namespace))
    assert scheduler.job(there.id).version == 4


def test_a_one_off_whose_time_passes_before_the_commit_is_late_and_not_lost(
    scheduler: Scheduler, connection: psycopg.Connection[Any], stage: Stage
) -> None:
    at = stage.now() + timedelta(seconds=0.05)
    job = scheduler.register("a", schedule=Once(at), connection=connection)
    while stage.now() < at:
        pass
    connection.commit()
    assert scheduler.job(job.id).next_run == at


def test_a_plain_registration_in_between_has_the_other_set_aside_with_its_cause(
    scheduler: Scheduler, connection: psycopg.Connection[Any], database: Database
) -> None:
    scheduler.register("a", schedule=Every(60), key="k", connection=connection)
    scheduler.register("a", schedule=Every(61), key="k")
    connection.commit()
    drain(database)
    rows = database.query(database.sql("SELECT error FROM :schema.inbox WHERE refused_at NOTNULL"))
    assert len(rows) == 1
    assert "KeyConflict" in rows[0][0]
    assert drain(database) == 0


def test_a_connection_to_nowhere_says_so(database: Database) -> None:
    with psycopg.connect(database.url) as connection:
        other = Scheduler(database.url, namespace="nowhere")
        with pytest.raises(SchemaMissing, match="horolog migrate"):
            other.register("a", schedule=Every(60), connection=connection)
    with pytest.raises(InvalidSetting, match="no connection"):
        other.register("a", schedule=Every(60), connection="postgresql://")


async def test_connections_of_asyncio_belong_to_the_async_scheduler(
    database: Database, scheduler: Scheduler
) -> None:
    async with (
        AsyncScheduler(database.url, namespace=database.namespace, actor="ann") as client,
        await psycopg.AsyncConnection.connect(database.url) as connection,
    ):
        job = await client.register("a", schedule=Every(60), connection=connection)
        run = await client.trigger(job.id, connection=connection)
        with pytest.raises(UnknownJob):
            await client.job(job.id)
        await connection.commit()
        assert (await client.job(job.id)).version == 2
        assert (await client.occurrence(run.id)).state == "scheduled"
        with pytest.raises(InvalidSetting, match="AsyncScheduler"):
            scheduler.register("a", schedule=Every(60), connection=connection)
        with (
            psycopg.connect(database.url) as blocking,
            pytest.raises(InvalidSetting, match="block the loop"),
        ):
            await client.register("a", schedule=Every(60), connection=blocking)
