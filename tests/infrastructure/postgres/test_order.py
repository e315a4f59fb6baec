"""Positions become visible in their order: no follower ever passes over an event that commits late.

The log lock is what makes it so, and the tests can tell: without it, the same steps lose an event.
"""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from time import monotonic, sleep
from uuid import UUID, uuid4

import pytest

from horolog.application.decision import Decision, decide_on_job
from horolog.application.queries.following import Follower
from horolog.domain.definition import JobDefinition
from horolog.domain.job_events import Registered
from horolog.domain.schedule import Every
from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.log_news import PostgresLogNews
from horolog.infrastructure.postgres.migrate import migrate, migrations
from horolog.infrastructure.postgres.packing import ARGUMENTS, packed

START = datetime(2027, 1, 1, tzinfo=UTC)
DEADLINE_S = 20.0


@pytest.fixture
def unlocked(database: Database) -> Database:
    """The namespace with the append function as it is, except that it takes no lock."""
    (text,) = (m.text for m in migrations() if "CREATE FUNCTION :schema.append(" in m.text)
    start = text.index("CREATE FUNCTION :schema.append(")
    function = text[start : text.index("END $$;", start) + len("END $$;")]
    lock = "PERFORM pg_advisory_xact_lock(hashtextextended(:literal || '/log', 0));"
    assert function.count(lock) == 1
    function = function.replace("CREATE", "CREATE OR REPLACE", 1).replace(lock, "")
    with database.connection() as connection:
        connection.execute(database.sql(function), prepare=False)
    return database


def registration(number: int = 0) -> Decision:
    definition = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
    event = Registered(definition=definition, partition=3, next_fire=START)
    return decide_on_job(None, UUID(int=number) if number else uuid4(), [event])[0]


@contextmanager
def held_open(database: Database, decision: Decision) -> Generator[Connection]:
    """An append that has done everything but its commit, which comes at the end of the block."""
    arguments = ", ".join(["%b"] * ARGUMENTS)
    statement = database.sql(f"SELECT :schema.append({arguments})")
    with database.session() as connection:
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        with connection.transaction():
            connection.execute(statement, packed([decision], None, 60.0))
            yield connection


@pytest.fixture
def threads() -> Generator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=8) as executor:
        yield executor


def until(holds: Callable[[], bool]) -> None:
    deadline = monotonic() + DEADLINE_S
    while not holds():
        assert monotonic() < deadline, "it did not come about"
        sleep(0.01)


def waits_for(database: Database, holder: Connection) -> bool:
    rows = database.query(
        database.sql(
            "SELECT pid FROM pg_stat_activity"
            " WHERE wait_event = 'advisory' AND %s = ANY (pg_blocking_pids(pid))"
        ),
        (holder.info.backend_pid,),
    )
    return len(rows) == 1


class OurFollower:
    """Horolog's own: remembers the last position, and looks again when it is told of news."""

    def __init__(self, database: Database) -> None:
        news = PostgresLogNews(database)
        self._follower = Follower(PostgresLog(database), news, poll_s=0.1)

    def read(self, count: int) -> list[int]:
        found: list[int] = []

        def enough() -> bool:
            found.extend(recorded.position for recorded in self._follower.page())
            return len(found) >= count

        until(enough)
        return found

    def close(self) -> None:
        self._follower.close()


class LibraryFollower:
    """The library's subscription on our recorder."""

    def __init__(self, database: Database) -> None:
        self._subscription = PostgresLogRecorder(database).subscribe(gt=0)
        self._subscription.__enter__()

    def read(self, count: int) -> list[int]:
        return [next(self._subscription).id for _ in range(count)]

    def close(self) -> None:
        self._subscription.__exit__(None, None, None)


AnyFollower = type[OurFollower] | type[LibraryFollower]
both_followers = pytest.mark.parametrize("follower_class", [OurFollower, LibraryFollower])


@both_followers
def test_an_append_waits_for_one_that_commits_late_and_comes_after_it(
    database: Database, threads: ThreadPoolExecutor, follower_class: AnyFollower
) -> None:
    log = PostgresLog(database)
    with closing(follower_class(database)) as follower:
        with held_open(database, registration(1)) as holder:
            second = threads.submit(log.append, [registration(2)])
            until(lambda: waits_for(database, holder) or second.done())
            assert not second.done()
            assert log.log() == []
        assert second.result(DEADLINE_S).position == 2
        assert follower.read(2) == [1, 2]
        assert [recorded.stream.int for recorded in log.log()] == [1, 2]


@both_followers
def test_without_the_lock_a_follower_misses_the_event_that_commits_late(
    unlocked: Database, follower_class: AnyFollower
) -> None:
    log = PostgresLog(unlocked)
    with closing(follower_class(unlocked)) as follower:
        with held_open(unlocked, registration(1)):
            assert log.append([registration(2)]).verdicts == ["accepted"]
            assert follower.read(1) == [2]
        assert log.append([registration(3)]).verdicts == ["accepted"]
        assert follower.read(1) == [3]
    assert [recorded.position for recorded in log.log()] == [1, 2, 3]


@both_followers
def test_a_follower_among_many_writers_reads_every_event_once_and_in_order(
    database: Database, threads: ThreadPoolExecutor, follower_class: AnyFollower
) -> None:
    log = PostgresLog(database)

    def write(count: int) -> None:
        for _ in range(count):
            log.append([registration() for _ in range(3)])

    with closing(follower_class(database)) as follower:
        writers = [threads.submit(write, 20) for _ in range(6)]
        seen = follower.read(6 * 20 * 3)
        for writer in writers:
            writer.result(DEADLINE_S)

    assert seen == sorted(seen)
    assert seen == [recorded.position for recorded in log.log()]


def test_an_append_that_was_taken_back_leaves_a_gap_and_stops_nobody(database: Database) -> None:
    log = PostgresLog(database)

    def taken_back() -> None:
        with held_open(database, registration(1)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        taken_back()
    log.append([registration(2)])
    with closing(OurFollower(database)) as follower:
        assert follower.read(1) == [2]


def test_namespaces_do_not_wait_for_each_other(database: Database, database_url: str) -> None:
    other = Database(database_url, f"{database.namespace}_2")
    migrate(other)
    with held_open(database, registration(1)):
        assert PostgresLog(other).append([registration(2)]).position == 1
    other.close()
