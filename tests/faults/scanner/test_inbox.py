"""A scanner sees a client's commit at once, and shares the work with others without doubling it."""

import asyncio
import time

import psycopg
from tests.faults.scanner.conftest import PARTITIONS, Stage

from horolog import Every, Scheduler


async def test_a_commit_is_in_the_log_by_its_notification_and_not_by_a_look(stage: Stage) -> None:
    """There is no look at the inbox for an hour: what is in the log before was told."""
    scheduler = Scheduler(stage.database_url, namespace=stage.namespace)
    logged = stage.database.sql("SELECT count(*) FROM :schema.jobs WHERE id = %s")
    async with stage.scanner(inbox_interval_s=3_600.0) as signals:
        await signals.reached("elected", PARTITIONS)
        with psycopg.connect(stage.database_url) as connection:
            for _ in range(20):
                job = scheduler.register("a", schedule=Every(60), connection=connection)
                connection.commit()
                await stage.until(lambda job=job: stage.database.query(logged, (job.id,)) == [(1,)])
    scheduler.close()


async def test_two_scanners_carry_out_each_commit_once(stage: Stage) -> None:
    scheduler = Scheduler(stage.database_url, namespace=stage.namespace)
    async with stage.scanner(), stage.scanner():
        with psycopg.connect(stage.database_url) as connection:
            for number in range(40):
                scheduler.register("a", schedule=Every(60), connection=connection)
                if number % 8 == 7:
                    connection.commit()
                    await asyncio.sleep(0)
        waiting = stage.database.sql("SELECT count(*) FROM :schema.inbox")
        deadline = time.monotonic() + 10
        while stage.database.query(waiting) != [(0,)] and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    registered = stage.database.sql(
        "SELECT count(*), count(DISTINCT stream) FROM :schema.job_events"
        " WHERE topic = 'job.registered.1'"
    )
    assert stage.database.query(registered) == [(40, 40)]
    scheduler.close()
