"""Projections of users on real servers: exactly once, over crashes, by one runner at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from horolog import (
    Every,
    InvalidPolicy,
    InvalidSetting,
    LoggedEvent,
    NotAllowed,
    Projection,
    ProjectionStopped,
    Scheduler,
    reset_projection,
    run_projection,
)
from horolog.application.projecting.running import Patience
from horolog.domain.job_events import Paused, Registered
from horolog.infrastructure.postgres.health import PostgresHealth
from horolog.testing import SimulatedScheduler, feed, happened

if TYPE_CHECKING:
    from horolog.infrastructure.postgres.database import Database

PATIENCE_S = 20.0


class Pauses(Projection):
    """How often each job was paused, in a schema of the user's own."""

    name = "pauses"
    topics = ("job.paused",)

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.broken = False

    def set_up(self, view: psycopg.Connection) -> None:
        view.execute(self.sql("CREATE SCHEMA IF NOT EXISTS {}"))
        view.execute(self.sql("CREATE TABLE IF NOT EXISTS {}.pauses (job uuid PRIMARY KEY, n int)"))

    def apply(self, event: LoggedEvent, view: psycopg.Connection) -> None:
        assert isinstance(event.event, Paused)
        statement = self.sql(
            "INSERT INTO {}.pauses AS p VALUES (%s, 1) ON CONFLICT (job) DO UPDATE SET n = p.n + 1"
        )
        view.execute(statement, (event.stream,))
        if self.broken and event.reason == "poison":
            raise ValueError("a bug")

    def tear_down(self, view: psycopg.Connection) -> None:
        view.execute(self.sql("DROP SCHEMA {} CASCADE"))

    def sql(self, text: LiteralString) -> sql.Composed:
        return sql.SQL(text).format(sql.Identifier(self.schema))


@pytest.fixture
def pauses(namespace: str) -> Pauses:
    return Pauses(f"{namespace}_reports")


def count(database: Database, pauses: Pauses) -> int:
    """How many pauses the view has counted; 0 before there is one."""
    try:
        rows = database.query(database.sql(f"SELECT sum(n)::int FROM {pauses.schema}.pauses"))
    except Exception:  # noqa: BLE001 - the table comes with the runner
        return 0
    return rows[0][0] or 0


def pause(scheduler: Scheduler, times: int, reason: str | None = None) -> None:
    job = scheduler.register("report", schedule=Every(3600))
    for _ in range(times):
        scheduler.pause(job.id, reason=reason)
        scheduler.resume(job.id)


@contextmanager
def followed(projection: Projection, scheduler: Scheduler) -> Generator[Thread]:
    stop = Event()
    thread = Thread(
        target=run_projection,
        args=(projection, scheduler),
        kwargs={"stop": stop, "patience": Patience(base_s=0.01)},
        daemon=True,
    )
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "never so"
        time.sleep(0.02)


def test_events_are_applied_as_they_come_and_once(
    scheduler: Scheduler, database: Database, pauses: Pauses
) -> None:
    pause(scheduler, 3)
    with followed(pauses, scheduler):
        until(lambda: count(database, pauses) == 3)
        pause(scheduler, 2)
        until(lambda: count(database, pauses) == 5)
    pause(scheduler, 2)
    assert run_projection(pauses, scheduler, until=scheduler.position()) == 2
    assert run_projection(pauses, scheduler, until=scheduler.position()) == 0
    assert count(database, pauses) == 7


def test_doctor_sees_how_far_behind_it_is(
    scheduler: Scheduler, database: Database, pauses: Pauses
) -> None:
    run_projection(pauses, scheduler, until=scheduler.position())
    pause(scheduler, 2)
    (follower,) = PostgresHealth(database).store_health().followers
    assert (follower.name, follower.lag) == ("pauses", 5)
    scheduler.register("report", schedule=Every(60))  # nothing that it wants
    run_projection(pauses, scheduler, until=scheduler.position())
    (follower,) = PostgresHealth(database).store_health().followers
    assert follower.lag == 0


def test_a_connection_that_breaks_repeats_nothing_and_leaves_nothing_out(
    scheduler: Scheduler, database: Database, pauses: Pauses
) -> None:
    with (
        followed(pauses, scheduler),
        psycopg.connect(database.url, autocommit=True) as connection,
    ):
        for done in range(5):
            pause(scheduler, 4)
            connection.execute(
                "SELECT pg_terminate_backend(l.pid) FROM pg_locks l"
                " JOIN pg_stat_activity a ON a.pid = l.pid"
                " WHERE l.locktype = 'advisory' AND a.application_name = %s",
                (f"horolog/{database.namespace}",),
            )
            until(lambda done=done: count(database, pauses) >= 4 * done)
        until(lambda: count(database, pauses) == 20)


def test_one_runs_and_another_takes_over(
    scheduler: Scheduler, database: Database, pauses: Pauses
) -> None:
    pause(scheduler, 2)
    with followed(pauses, scheduler) as first:
        until(lambda: count(database, pauses) == 2)
        with pytest.raises(NotAllowed, match="is running"):
            reset_projection(pauses, scheduler)
        with followed(pauses, scheduler):
            pause(scheduler, 2)
            until(lambda: count(database, pauses) == 4)
            assert first.is_alive()
    assert count(database, pauses) == 4
    with followed(pauses, scheduler):
        pause(scheduler, 1)
        until(lambda: count(database, pauses) == 5)


def test_it_stops_before_what_it_cannot_apply_and_goes_on_when_it_is_mended(
    scheduler: Scheduler, database: Database, pauses: Pauses
) -> None:
    pause(scheduler, 2)
    pause(scheduler, 1, reason="poison")
    pause(scheduler, 2)
    (poison,) = (e for e in scheduler.log(topics="job.paused") if e.reason == "poison")
    pauses.broken = True
    quick = Patience(attempts=2, base_s=0.01)
    for _ in range(2):
        with pytest.raises(ProjectionStopped, match="a bug") as stopped:
            run_projection(pauses, scheduler, until=scheduler.position(), patience=quick)
        assert stopped.value.position == poison.position
        assert count(database, pauses) == 2

    pauses.broken = False
    run_projection(pauses, scheduler, until=scheduler.position())
    assert count(database, pauses) == 5
    pauses.broken = True
    reset_projection(pauses, scheduler)
    assert count(database, pauses) == 0
    skip = [poison.position]
    run_projection(pauses, scheduler, until=scheduler.position(), skip=skip, patience=quick)
    assert count(database, pauses) == 4


def test_it_may_begin_now_and_what_makes_no_sense_is_refused(
    scheduler: Scheduler, database: Database, pauses: Pauses
) -> None:
    class Later(Pauses):
        name = "later"
        begin = "now"

    pause(scheduler, 3)
    later = Later(pauses.schema)
    assert run_projection(later, scheduler, until=scheduler.position()) == 0
    pause(scheduler, 1)
    assert run_projection(later, scheduler, until=scheduler.position()) == 1

    class Nameless(Projection):
        pass

    class Wrong(Projection):
        name = "wrong"
        topics = ("job.exploded",)

    class Never(Projection):
        name = "never"
        begin = "yesterday"

    with pytest.raises(InvalidSetting, match="has a name"):
        run_projection(Nameless(), scheduler)
    with pytest.raises(InvalidPolicy, match="no event has it"):
        run_projection(Wrong(), scheduler)
    with pytest.raises(InvalidSetting, match="a position"):
        run_projection(Never(), scheduler)


def test_the_kit_feeds_events_and_shows_the_view() -> None:
    class Names(Projection):
        name = "names"
        topics = ("job.registered",)

        def set_up(self, view: list[str]) -> None:
            view.append("set up")

        def apply(self, event: LoggedEvent, view: list[str]) -> None:
            assert isinstance(event.event, Registered)
            view.append(event.event.definition.name)

    view: list[Any] = []
    with SimulatedScheduler() as scheduler:
        scheduler.register("bill", schedule=Every(60))
        scheduler.register("mail", schedule=Every(60))
        scheduler.advance(minutes=2)
        assert feed(Names(), scheduler.log(), view) == 2
    assert view == ["set up", "bill", "mail"]
    assert feed(Names(), [happened(Paused())], view) == 0
