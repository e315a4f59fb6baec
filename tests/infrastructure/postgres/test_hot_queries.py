"""The hot questions are served by an index, whatever the size of the log: by the plans that ran.

Postgres tells the plan of each statement of a call as it was executed (auto_explain), nested ones
too. A table that is read whole, or an index that is read whole, would show in it.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from bench.filled_log import Filled, fill

from horolog import Scheduler
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres import database as database_module
from horolog.infrastructure.postgres.alerts import PostgresAlerts
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import psycopg

_EXPLAIN = """
    LOAD 'auto_explain';
    SELECT set_config('auto_explain.log_min_duration', '0', false),
           set_config('auto_explain.log_nested_statements', 'on', false),
           set_config('auto_explain.log_analyze', 'on', false),
           set_config('client_min_messages', 'log', false);
"""


class Plans:
    """The plans of what was executed since they were last looked at."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def listen(self, connection: Connection) -> None:
        def tell(notice: psycopg.errors.Diagnostic) -> None:
            self.told.append(notice.message_primary or "")

        connection.add_notice_handler(tell)
        connection.execute(_EXPLAIN, prepare=False)

    def of(self, ask: Callable[[], Any]) -> str:
        ask()  # the statement is prepared, and the connection is warm
        self.told.clear()
        ask()
        return "\n".join(self.told)


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans()


@pytest.fixture(scope="module")
def filled(servers: EmbeddedServers) -> Generator[tuple[Database, Filled]]:
    """A log of some 60,000 events of a thousand jobs, twenty days long."""
    found = servers.find()
    assert found is not None
    database = Database(found.database_url, "t_hot_queries")
    migrate(database)
    yield database, fill(database, jobs=1_000, rounds=20, days=20, watch=lambda runs: None)
    with database.session() as connection:
        connection.execute("DROP SCHEMA t_hot_queries CASCADE")
    database.close()


@pytest.fixture
def asked(
    filled: tuple[Database, Filled], plans: Plans, monkeypatch: pytest.MonkeyPatch
) -> Generator[Scheduler]:
    """A scheduler whose connections tell their plans."""
    configure = database_module._configure  # pyright: ignore[reportPrivateUsage]

    def configured(connection: Connection, answer_s: float) -> None:
        configure(connection, answer_s)
        plans.listen(connection)

    monkeypatch.setattr(database_module, "_configure", configured)
    database, _ = filled
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        yield scheduler


def assert_served(plan: str, *indexes: str) -> None:
    """Each of ``indexes`` was used, and no big table was read whole, nor many rows to keep few."""
    assert "Query Text" in plan
    for index in indexes:
        assert index in plan, plan
    tables = "(?:occurrence_events|executions|job_events)"
    whole = rf"Seq Scan on {tables}\S* [^\n]*actual time=\S+ rows=[1-9]"
    assert not re.search(whole, plan), plan
    scanned = [float(rows) for rows in re.findall(r"actual time=\S+ rows=(\d+(?:\.\d+)?)", plan)]
    # At most: twenty of each of the 64 partitions, to choose twenty of all.
    assert max(scanned) <= 64 * 20, plan


def test_a_history_is_the_stretch_of_a_primary_key(asked: Scheduler, plans: Plans) -> None:
    job, run = asked.jobs()[7].id, asked.occurrences(limit=3)[-1].id
    assert_served(plans.of(lambda: asked.history(job)), "job_events_pkey")
    assert_served(plans.of(lambda: asked.history(run)), "_pkey")


def test_a_page_of_a_jobs_runs_is_a_stretch_of_its_index(
    asked: Scheduler, plans: Plans, filled: tuple[Database, Filled]
) -> None:
    job = asked.jobs()[7].id
    middle = filled[1].begin + timedelta(days=9)
    for page in (
        lambda: asked.occurrences(job_id=job, limit=100),
        lambda: asked.occurrences(job_id=job, newest_first=True, limit=100),
        lambda: asked.executions(job_id=job, since=middle, limit=15),
        lambda: asked.executions(job_id=job, worker="worker/host-1", limit=10),
    ):
        assert_served(plans.of(page), "job_id_id_idx")


def test_runs_in_a_time_are_a_stretch_of_the_ids_or_of_the_positions(
    asked: Scheduler, plans: Plans, filled: tuple[Database, Filled]
) -> None:
    middle = filled[1].begin + timedelta(days=9)
    assert_served(
        plans.of(lambda: asked.executions(since=middle, limit=15)), "executions_", "_pkey"
    )
    dead = plans.of(lambda: asked.executions(state="dead", since=middle, limit=15))
    assert_served(dead, "state_id_idx")
    by_end = plans.of(lambda: asked.executions(by_end=True, since=middle, limit=15))
    assert_served(by_end, "position_idx")


def test_what_did_not_run_is_a_stretch_of_two_indexes(
    asked: Scheduler, plans: Plans, filled: tuple[Database, Filled]
) -> None:
    begin = filled[1].begin
    assert_served(plans.of(lambda: asked.skips(limit=20)), "job_events_skips", "state_id_idx")
    beyond = plans.of(
        lambda: asked.skips(
            since=begin - timedelta(minutes=85), until=begin - timedelta(minutes=84), limit=20
        )
    )
    assert_served(beyond, "job_events_skipped_fires")


def test_a_job_of_the_past_is_a_few_descents(
    asked: Scheduler, plans: Plans, filled: tuple[Database, Filled]
) -> None:
    job = asked.jobs()[7].id
    middle = filled[1].begin + timedelta(days=9)
    assert asked.job(job, as_of=middle).fires > 0
    plan = plans.of(lambda: asked.job(job, as_of=middle))
    assert_served(plan, "job_events_pkey", "job_events_position", "job_id_id_idx")


def test_the_order_of_a_run_is_found_by_its_id(asked: Scheduler, plans: Plans) -> None:
    run = asked.trigger(asked.jobs()[7].id, at=datetime.fromisoformat("2999-01-01T00:00Z"))
    assert_served(plans.of(lambda: asked.explain(run.id)), "job_events_ordered")


def test_changes_explanations_and_figures_are_stretches_of_indexes(
    asked: Scheduler, plans: Plans
) -> None:
    job, run = asked.jobs()[7].id, asked.occurrences(limit=3)[-1].id
    assert_served(plans.of(lambda: asked.changes(job)), "job_events_pkey")
    assert_served(plans.of(lambda: asked.explain(run)), "_pkey")
    assert_served(plans.of(lambda: asked.statistics(job_id=job)), "job_id_id_idx")
    some = plans.of(lambda: asked.log(topics=["job.fires_skipped"], limit=100))
    assert_served(some, "job_events_position")
    assert_served(plans.of(lambda: asked.log(after=30_000, limit=100)), "position")


def test_alerts_are_read_from_indexes_of_their_own(asked: Scheduler, plans: Plans) -> None:
    alerts = PostgresAlerts(
        database := Database(asked.settings.database_url(), asked.settings.namespace),
        PostgresLog(database),
    )
    history = plans.of(lambda: alerts.history("team-1", after=0, limit=100))
    assert_served(history, "job_events_alerts")
    for ask in (alerts.seen, alerts.alerts):
        plan = plans.of(ask)
        tables = "(?:occurrence_events|executions|job_events|dead_letters)"
        assert "job_events_alert_streams" in plan, plan
        assert not re.search(rf"Seq Scan on {tables}\b", plan), plan
    database.close()


def test_what_is_due_is_a_stretch_of_the_partitions_index(asked: Scheduler, plans: Plans) -> None:
    database = Database(asked.settings.database_url(), asked.settings.namespace)
    ranges = database.sql(
        "SELECT * FROM :schema.fires_due(ARRAY[1, 2, 3]::smallint[], array_fill("
        "'-infinity'::timestamptz, ARRAY[3]), array_fill(:literal_id, ARRAY[3]),"
        " array_fill('infinity'::timestamptz, ARRAY[3]), 100)".replace(
            ":literal_id", "'00000000-0000-0000-0000-000000000000'::uuid"
        )
    )
    assert_served(plans.of(lambda: database.query(ranges)), "next_runs_fires")
    states, ids = PostgresStates(database), [job.id for job in asked.jobs(limit=20)]
    plan = plans.of(lambda: states.due(ids))
    assert_served(plan, "next_runs_pkey", "jobs_pkey")
    until = datetime.fromisoformat("9000-01-01T00:00Z")
    plan = plans.of(lambda: asked.due_next(until, limit=20))
    assert_served(plan, "next_runs_fires", "jobs_pkey")
    database.close()
