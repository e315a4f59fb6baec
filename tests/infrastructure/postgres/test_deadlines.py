"""What the database calls a missed deadline."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from horolog import Once, Scheduler
from horolog.domain.ids import occurrence_id
from horolog.infrastructure.postgres.database import Database


@pytest.mark.parametrize(("state", "late"), [("dead", True), ("discarded", False)])
def test_a_dead_letter_that_is_discarded_later_does_not_make_its_run_late(
    database: Database, state: str, late: bool
) -> None:
    fire = datetime.now(UTC) - timedelta(hours=1)
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        far = Once(datetime.now(UTC) + timedelta(days=1))
        job = scheduler.register("bill", schedule=far, finish_within=60)
    run = occurrence_id(job.id, fire)
    database.query(
        database.sql(
            "INSERT INTO :schema.executions VALUES"
            " (clock_timestamp(), %s, %s, %s, 3, 1, 1, 0, %s, 'schedule')"
        ),
        (fire, run, job.id, state),
    )
    missed: list[tuple[UUID]] = database.query(
        database.sql("SELECT occurrence_id FROM :schema.deadlines_missed('1970-01-01Z', 10)")
    )
    assert missed == ([(run,)] if late else [])


def test_a_success_that_was_pruned_is_not_missed(database: Database) -> None:
    """Nothing is left of the time before the oldest month, so nothing is said of it."""
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        far = Once(datetime.now(UTC) + timedelta(days=1))
        job = scheduler.register("bill", schedule=far, expect_success_by=200 * 86_400)
    database.query(
        database.sql(
            "UPDATE :schema.jobs SET registered_at = registered_at - interval '400 days'"
            " WHERE id = %s RETURNING 1"
        ),
        (job.id,),
    )
    missed = database.sql("SELECT 1 FROM :schema.deadlines_missed('1970-01-01Z', 10)")
    assert database.query(missed) == []


def test_a_success_counts_however_many_failures_came_after_it(database: Database) -> None:
    """Else a job that goes on failing would be said to be silent a second time."""
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        far = Once(datetime.now(UTC) + timedelta(days=1))
        job = scheduler.register("bill", schedule=far, expect_success_by=60)
    begin = datetime.now(UTC) - timedelta(minutes=5)
    database.query(
        database.sql(
            "UPDATE :schema.jobs SET registered_at = registered_at - interval '10 minutes'"
            " WHERE id = %s RETURNING 1"
        ),
        (job.id,),
    )
    fires = [begin + timedelta(seconds=n) for n in range(200)]
    database.query(
        database.sql(
            "WITH made AS (INSERT INTO :schema.executions"
            " SELECT at, at, id, %s, 3, 1, 0, 0, state, 'schedule'"
            " FROM unnest(%s::timestamptz[], %s::uuid[], %s::text[]) AS r (at, id, state)"
            " RETURNING 1) SELECT count(*) FROM made"
        ),
        (
            job.id,
            fires,
            [occurrence_id(job.id, fire) for fire in fires],
            ["succeeded", *["dead"] * 199],
        ),
    )
    missed = database.sql("SELECT due FROM :schema.deadlines_missed('1970-01-01Z', 10)")
    assert database.query(missed) == [(begin + timedelta(seconds=60),)]
