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


def _watched(database: Database, success_s: float) -> UUID:
    """A job of a long time ago that expects a success."""
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        far = Once(datetime.now(UTC) + timedelta(days=1))
        job = scheduler.register("bill", schedule=far, expect_success_by=success_s)
    database.query(
        database.sql(
            "UPDATE :schema.jobs SET registered_at = registered_at - interval '10 days'"
            " WHERE id = %s RETURNING 1"
        ),
        (job.id,),
    )
    return job.id


def _ran(database: Database, job: UUID, *runs: tuple[datetime, datetime, str]) -> None:
    """Runs by their fire times: when each ended, and how."""
    fires, ends, states = zip(*runs, strict=True)
    database.query(
        database.sql(
            "WITH made AS (INSERT INTO :schema.executions"
            " SELECT ended, fire, id, %s, 3, 1, 0, 0, state, 'schedule'"
            " FROM unnest(%s::timestamptz[], %s::timestamptz[], %s::uuid[], %s::text[])"
            " AS r (fire, ended, id, state) RETURNING 1) SELECT count(*) FROM made"
        ),
        (job, list(fires), list(ends), [occurrence_id(job, f) for f in fires], list(states)),
    )


def _missed_at(database: Database) -> list[datetime]:
    missed = database.sql("SELECT due FROM :schema.deadlines_missed('1970-01-01Z', 10)")
    return [due for (due,) in database.query(missed)]


MINUTE = timedelta(minutes=1)


def test_a_success_counts_however_many_failures_came_after_it(database: Database) -> None:
    """Else a job that goes on failing would be said to be silent a second time."""
    job = _watched(database, 60)
    begin = datetime.now(UTC) - 5 * MINUTE
    fires = [begin + timedelta(seconds=n) for n in range(200)]
    states = ["succeeded", *["dead"] * 199]
    _ran(database, job, *zip(fires, fires, states, strict=True))
    assert _missed_at(database) == [begin + MINUTE]


@pytest.mark.parametrize("took", [9 * MINUTE, 10 * MINUTE, 11 * MINUTE, 300 * MINUTE])
def test_a_success_counts_from_when_it_came_however_old_its_fire_time_is(
    database: Database, took: timedelta
) -> None:
    """A replay that succeeds at last, say; the success of a later fire time had come before it."""
    job = _watched(database, 60)
    came = datetime.now(UTC) - 3 * MINUTE
    later = came - timedelta(seconds=30)
    failed = [later + timedelta(milliseconds=n + 1) for n in range(150)]
    assert came - took < later
    _ran(
        database,
        job,
        (came - took, came, "succeeded"),
        (later, later, "succeeded"),
        *((fire, came + MINUTE, "dead") for fire in failed),
    )
    assert _missed_at(database) == [came + MINUTE]


def test_a_failure_that_came_late_is_no_success(database: Database) -> None:
    job = _watched(database, 60)
    came = datetime.now(UTC) - 3 * MINUTE
    late = (came - 300 * MINUTE, came + MINUTE, "dead")
    _ran(database, job, late, (came, came, "succeeded"))
    assert _missed_at(database) == [came + MINUTE]


def test_the_successes_that_came_late_are_found_by_their_index_in_every_month(
    database: Database,
) -> None:
    """Where a month lacked it, each look would read that month."""
    lacking = database.sql(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = format('%%I.executions', :literal::text)::regclass"
        " AND NOT EXISTS (SELECT FROM pg_inherits n JOIN pg_index x ON x.indexrelid = n.inhrelid"
        "  WHERE x.indrelid = c.oid AND x.indisvalid AND n.inhparent ="
        "  format('%%I.executions_late_successes', :literal::text)::regclass) AND %s"
    )
    with Scheduler(database.url, namespace=database.namespace):
        assert database.query(lacking, (True,)) == []
    with database.session() as connection:
        connection.execute(database.sql("SELECT :schema.create_month_partitions(3, 5)"))
    assert database.query(lacking, (True,)) == []
