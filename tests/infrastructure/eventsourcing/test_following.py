"""Following the log with the library: woken by appends, each event counted exactly once."""

import subprocess
import sys
import time
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any
from uuid import UUID

import psycopg
import pytest
from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.persistence import EventStore, IntegrityError, Notification, Tracking
from eventsourcing.projection import Projection, ProjectionRunner

from horolog.application.projecting.running import Patience
from horolog.domain.definition import JobDefinition
from horolog.domain.job_events import Paused, Registered, Resumed
from horolog.domain.schedule import Every
from horolog.infrastructure.eventsourcing.durable import run_durably
from horolog.infrastructure.eventsourcing.factory import HorologLog
from horolog.infrastructure.eventsourcing.mapper import HorologMapper, Placed
from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.eventsourcing.tracking import PostgresLogTracking
from horolog.infrastructure.postgres.database import Database

START = datetime(2027, 1, 1, tzinfo=UTC)


def born(number: int) -> Placed:
    definition = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
    event = Registered(definition=definition, partition=3, next_fire=START, reason=str(number))
    return Placed(UUID(int=number), 1, event)


@pytest.fixture
def events(recorder: PostgresLogRecorder) -> EventStore[UUID]:
    return EventStore(HorologMapper(), recorder)


def listeners(database: Database) -> list[int]:
    """The backends that listen to the log of this namespace."""
    with psycopg.connect(database.url) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name = %s AND query LIKE 'LISTEN %%'",
            (f"horolog/{database.namespace}",),
        )
        return [pid for (pid,) in found]


def test_a_subscription_is_woken_by_an_append(
    events: EventStore[UUID], recorder: PostgresLogRecorder
) -> None:
    events.put([born(1)])
    received: list[Notification] = []
    with recorder.subscribe(gt=0) as subscription:
        received.append(next(subscription))
        for number in range(2, 12):
            events.put([born(number)])
            received.append(next(subscription))

    assert [n.id for n in received] == list(range(1, 12))


def test_a_subscription_takes_up_where_it_is_told_and_only_what_it_asked_for(
    events: EventStore[UUID], recorder: PostgresLogRecorder
) -> None:
    events.put([born(1), born(2)])
    with recorder.subscribe(gt=1, topics=["job.paused.1"]) as subscription:
        events.put([Placed(UUID(int=1), 2, Paused()), born(3)])
        assert next(subscription).topic == "job.paused.1"


def test_a_subscription_survives_the_loss_of_its_connection(
    events: EventStore[UUID], recorder: PostgresLogRecorder, database: Database
) -> None:
    with recorder.subscribe(gt=0) as subscription:
        events.put([born(1)])
        assert next(subscription).id == 1
        with psycopg.connect(database.url, autocommit=True) as connection:
            for pid in listeners(database):
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        events.put([born(2)])
        assert next(subscription).id == 2


def test_a_stopped_subscription_ends(recorder: PostgresLogRecorder) -> None:
    received: list[Notification] = []
    with recorder.subscribe() as subscription:
        waiting = Thread(target=lambda: received.extend(subscription))
        waiting.start()
        subscription.stop()
        waiting.join(timeout=10)
        assert not waiting.is_alive()
    assert received == []


class Pauses(PostgresLogTracking):
    """A view of the user's own: how often each job was paused, in a table of the user's own."""

    def count(self, job: UUID, tracking: Tracking) -> None:
        with self.transaction(tracking) as connection:
            connection.execute(
                self.database.sql(
                    "INSERT INTO :schema.pauses AS p VALUES (%s, 1)"
                    " ON CONFLICT (job) DO UPDATE SET count = p.count + 1"
                ),
                (job,),
            )

    def counts(self) -> dict[int, int]:
        rows = self.database.query(self.database.sql("SELECT job, count FROM :schema.pauses"))
        return {job.int: count for job, count in rows}


class PausesProjection(Projection[Pauses]):
    name = "pauses"
    topics = ("job.paused.1",)
    break_at: int | None = None

    @singledispatchmethod
    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        raise AssertionError(f"{domain_event} is nothing that was asked for")

    @process_event.register
    def count(self, domain_event: Placed, tracking: Tracking) -> None:
        assert isinstance(domain_event.event, Paused)
        self.view.count(domain_event.originator_id, tracking)
        if tracking.notification_id == self.break_at:
            raise RuntimeError("the process dies after its commit")


@pytest.fixture
def pauses_table(database: Database) -> Database:
    database.query(
        database.sql("CREATE TABLE :schema.pauses (job uuid PRIMARY KEY, count int NOT NULL)")
    )
    return database


def runner(database: Database) -> ProjectionRunner[HorologLog, Pauses]:
    return ProjectionRunner(
        application_class=HorologLog,
        projection_class=PausesProjection,
        view_class=Pauses,
        env={
            "PERSISTENCE_MODULE": "horolog.infrastructure.eventsourcing.factory",
            "HOROLOG_DATABASE_URL": database.url,
            "HOROLOG_NAMESPACE": database.namespace,
        },
    )


def pause_and_resume(events: EventStore[UUID], job: int, version: int) -> int:
    """Two more events of a job; returns the position of the second."""
    recordings = events.put(
        [
            Placed(UUID(int=job), version, Paused()),
            Placed(UUID(int=job), version + 1, Resumed(next_fire=START)),
        ]
    )
    return recordings[0].notification.id


def test_a_users_projection_follows_the_log_exactly_once_over_a_crash(
    events: EventStore[UUID],
    recorder: PostgresLogRecorder,
    pauses_table: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events.put([born(1), born(2)])
    pause_and_resume(events, 1, 2)
    breaking = pause_and_resume(events, 2, 2)
    monkeypatch.setattr(PausesProjection, "break_at", breaking)
    first = runner(pauses_table)
    with pytest.raises(RuntimeError, match="dies after its commit"), first:
        first.run_forever(timeout=20)
    assert first.view.counts() == {1: 1, 2: 1}
    first.view.close()

    monkeypatch.setattr(PausesProjection, "break_at", None)
    pause_and_resume(events, 2, 4)
    with runner(pauses_table) as second:
        last = pause_and_resume(events, 1, 4)
        second.wait(last, timeout=20)
        assert second.view.counts() == {1: 2, 2: 2}
        assert second.view.max_tracking_id("horolog") == last
        second.view.close()
    assert recorder.max_tracking_id("pauses/horolog") == last


def test_of_two_processes_with_one_follower_the_slower_writes_nothing(
    events: EventStore[UUID], pauses_table: Database
) -> None:
    events.put([born(1)])
    one, two = (Pauses(pauses_table, follower="pauses") for _ in range(2))
    one.count(UUID(int=1), Tracking("horolog", 2))
    for position in (1, 2):
        with pytest.raises(IntegrityError):
            two.count(UUID(int=1), Tracking("horolog", position))
    assert two.counts() == {1: 1}


def test_followers_of_one_log_do_not_share_a_position(database: Database) -> None:
    one, two = (PostgresLogTracking(database, follower=name) for name in ("one", "two"))
    one.insert_tracking(Tracking("horolog", 7))
    assert two.max_tracking_id("horolog") is None
    two.insert_tracking(Tracking("horolog", 3))
    assert one.max_tracking_id("horolog") == 7


def test_a_view_that_fails_takes_its_position_back(pauses_table: Database) -> None:
    view = Pauses(pauses_table, follower="pauses")

    def fail_at(tracking: Tracking) -> None:
        with view.transaction(tracking) as connection:
            connection.execute(
                pauses_table.sql("INSERT INTO :schema.pauses VALUES (%s, 1)"), (UUID(int=1),)
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at(Tracking("horolog", 1))
    assert view.counts() == {}
    assert view.max_tracking_id("horolog") is None


LAYERS = """
import importlib, pkgutil, sys
import horolog
# Django's parts are imported in a configured project alone.
skipped = "horolog.infrastructure.eventsourcing.", "horolog.interface.integrations.django."
for module in list(pkgutil.walk_packages(horolog.__path__, "horolog.")):
    if not module.name.startswith(skipped) and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
found = sorted(name for name in sys.modules if name.partition(".")[0] == "eventsourcing")
sys.exit(f"imported: {found}" if found else 0)
"""


def test_nothing_else_in_horolog_imports_the_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LAYERS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_runner_is_made_anew_after_a_failure_and_two_take_turns(
    events: EventStore[UUID], pauses_table: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    events.put([born(1), born(2)])
    pause_and_resume(events, 1, 2)
    breaking = pause_and_resume(events, 2, 2)
    monkeypatch.setattr(PausesProjection, "break_at", breaking)
    stop = Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            quick = Patience(attempts=3, base_s=0.01)
            run_durably(
                lambda: runner(pauses_table),
                pauses_table,
                "pauses/horolog",
                stop=stop,
                patience=quick,
            )
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    threads = [Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    view = Pauses(pauses_table, follower="pauses")
    last = pause_and_resume(events, 1, 4)
    deadline = time.monotonic() + 20
    while view.max_tracking_id("horolog") != last:
        assert time.monotonic() < deadline
        assert not errors
        time.sleep(0.02)
    assert view.counts() == {1: 2, 2: 1}
    stop.set()
    for thread in threads:
        thread.join(20)
    assert errors == []


def test_a_runner_that_never_gets_on_is_given_up(
    events: EventStore[UUID], pauses_table: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(self: PausesProjection, domain_event: Any, tracking: Tracking) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(PausesProjection, "process_event", count)
    events.put([born(1)])
    pause_and_resume(events, 1, 2)
    with pytest.raises(ValueError, match="a bug"):
        run_durably(
            lambda: runner(pauses_table),
            pauses_table,
            "pauses/horolog",
            stop=Event(),
            patience=Patience(attempts=2, base_s=0.01),
        )
