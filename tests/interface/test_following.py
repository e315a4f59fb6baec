"""Following the log: at once, without gaps, over broken connections and late commits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from queue import Empty, Queue
from typing import TYPE_CHECKING

import psycopg
import pytest

from horolog import Every, JobSpec, LoggedEvent, Scheduler, StoreUnavailable
from horolog.application.queries.following import Follower
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.log_news import PostgresLogNews

if TYPE_CHECKING:
    from uuid import UUID

    from horolog.application.log import Recorded
    from horolog.infrastructure.postgres.database import Connection, Database

PATIENCE_S = 20.0


@contextmanager
def following(scheduler: Scheduler, after: int = 0) -> Generator[Queue[LoggedEvent]]:
    """The events as they come, read in a thread."""
    events: Queue[LoggedEvent] = Queue()
    stop = threading.Event()
    follower = scheduler.follower(after)

    def read() -> None:
        while not stop.is_set():
            for recorded in follower.page():
                events.put(LoggedEvent.of(recorded))
        follower.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield events
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_what_is_there_comes_first_and_then_what_is_appended_at_once(scheduler: Scheduler) -> None:
    first = scheduler.register("a", schedule=Every(60))
    with following(scheduler) as events:
        assert events.get(timeout=PATIENCE_S).stream == first.id
        asked = time.monotonic()
        second = scheduler.register("a", schedule=Every(60))
        assert events.get(timeout=PATIENCE_S).stream == second.id
        assert time.monotonic() - asked < PATIENCE_S


def test_a_follower_begins_where_it_is_told(scheduler: Scheduler) -> None:
    scheduler.register("a", schedule=Every(60))
    (last,) = scheduler.log()
    job = scheduler.register("b", schedule=Every(60))
    with closing(scheduler.follow(after=last.position)) as events:
        assert next(events).stream == job.id


def test_a_follower_of_one_topic_sees_it_alone(scheduler: Scheduler) -> None:
    job = scheduler.register("a", schedule=Every(60))
    scheduler.pause(job.id)
    with closing(scheduler.follow(topics="job.paused")) as events:
        assert next(events).topic == "job.paused.1"


def test_an_event_whose_notification_is_lost_is_seen_all_the_same(
    scheduler: Scheduler, database: Database
) -> None:
    class Deaf:
        def wait(self, timeout_s: float) -> None:
            time.sleep(timeout_s)

        def close(self) -> None: ...

    follower = Follower(PostgresLog(database), Deaf(), poll_s=0.01)
    assert follower.page() == []
    job = scheduler.register("a", schedule=Every(60))
    (event,) = _first(follower)
    assert event.stream == job.id


def test_a_broken_connection_is_made_anew_and_nothing_is_passed_over(
    scheduler: Scheduler, database: Database
) -> None:
    with following(scheduler) as events:
        jobs = [scheduler.register("a", schedule=Every(60)).id]
        assert events.get(timeout=PATIENCE_S).stream == jobs[0]
        for _ in range(3):
            _kill_others(database)
            more = [JobSpec("a", schedule=Every(60))] * 5
            jobs += [job.id for job in scheduler.register_many(more)]
        seen = [jobs[0]]
        while len(seen) < len(jobs):
            seen.append(events.get(timeout=PATIENCE_S).stream)
        assert seen == jobs
        with pytest.raises(Empty):
            events.get(timeout=0.05)


def test_a_follower_that_cannot_connect_at_all_says_so(namespace: str) -> None:
    away = Scheduler("postgresql://nobody@127.0.0.1:1/none", namespace=namespace)
    with pytest.raises(StoreUnavailable, match="Connection refused"):
        next(away.follow())


def test_no_follower_passes_over_an_event_that_commits_late(
    scheduler: Scheduler, database: Database
) -> None:
    """One transaction takes its positions and stays open; another must not commit behind it.

    If it could, a follower would see the later position, go on from there, and never see the
    earlier one.
    """
    slow = scheduler.register("slow", schedule=Every(60))
    with database.session() as held:
        held.execute("BEGIN")
        _begin_append(held, database, slow.id)
        other: Queue[str] = Queue()

        def register() -> None:
            scheduler.register("quick", schedule=Every(60))
            other.put("committed")

        thread = threading.Thread(target=register)
        thread.start()
        # It waits for the log lock, and nobody sees anything of either.
        _until(lambda: _waiting(database) == 1)
        assert other.empty()
        assert len(scheduler.log()) == 1
        follower = Follower(PostgresLog(database), PostgresLogNews(database), poll_s=0.01)
        assert len(follower.page()) == 1
        held.execute("COMMIT")
        thread.join(PATIENCE_S)
    late, quick = _first(follower, 2)
    follower.close()
    assert (late.stream, late.version) == (slow.id, 2)
    assert late.position < quick.position


def _begin_append(connection: Connection, database: Database, job_id: UUID) -> None:
    """The lock and the insert of an append, as the database function does them."""
    connection.execute(
        database.sql("SELECT pg_advisory_xact_lock(hashtextextended(:literal || '/log', 0))")
    )
    connection.execute(
        database.sql(
            "INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)"
            " VALUES (nextval(:positions), clock_timestamp(), %s, 2, 'job.paused.1', '{}')"
        ),
        (job_id,),
    )


def _waiting(database: Database) -> int:
    text = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND wait_event = 'advisory' AND application_name = %s"
    )
    return database.query(database.sql(text), (f"horolog/{database.namespace}",))[0][0]


def _kill_others(database: Database) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = %s AND pid <> pg_backend_pid()",
            (f"horolog/{database.namespace}",),
        )


def _first(follower: Follower, count: int = 1) -> list[Recorded]:
    found: list[Recorded] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < deadline
        found += follower.page()
    return found


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)
