"""The library's event store, notification log and recorder on the log that Horolog works with."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from uuid import UUID

import pytest
from eventsourcing.application import LocalNotificationLog
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import (
    DataError,
    EventStore,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    StoredEvent,
    Tracking,
)

from horolog.application.decision import decide_on_job
from horolog.domain.definition import JobDefinition
from horolog.domain.event import Event
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.domain.job_events import BackfillRequested, Paused, Registered, Resumed, Triggered
from horolog.domain.occurrence_events import Attempted, Claimed, Failed, Succeeded
from horolog.domain.partition import Elected, Released
from horolog.domain.schedule import Every
from horolog.infrastructure.eventsourcing.mapper import HorologMapper, Placed
from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.packing import ARGUMENTS, packed
from horolog.infrastructure.postgres.states import PostgresStates

START = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
JOB = UUID(int=1)


def registered(number: int = 0) -> Registered:
    definition = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
    return Registered(definition=definition, partition=3, next_fire=START, reason=str(number))


def claim(job: UUID, fires: int, *, job_version: int = 1) -> tuple[UUID, Claimed]:
    """The first claim of a job's fire time, the ``fires``-th one."""
    at = START + (fires - 1) * MINUTE
    event = Claimed(
        job_id=job,
        job_version=job_version,
        fire_time=at,
        attempt=1,
        partition=3,
        token=1,
        window=30.0,
        fires=fires,
        next_fire=at + MINUTE,
    )
    return occurrence_id(job, at), event


def run_events(job: UUID, fires: int, *events: Event) -> list[Placed]:
    identity, claimed = claim(job, fires)
    return [Placed(identity, n, event) for n, event in enumerate((claimed, *events), 1)]


@pytest.fixture
def events(recorder: PostgresLogRecorder) -> EventStore[UUID]:
    return EventStore(HorologMapper(), recorder)


@pytest.fixture
def states(database: Database) -> PostgresStates:
    return PostgresStates(database)


def test_events_are_put_and_got_back_by_stream_and_version(events: EventStore[UUID]) -> None:
    placed = [
        Placed(JOB, 1, registered()),
        Placed(JOB, 2, Paused(actor="ann")),
        Placed(JOB, 3, Resumed(next_fire=START)),
    ]
    recordings = events.put(placed)

    assert [r.domain_event for r in recordings] == placed
    assert [r.notification.id for r in recordings] == [1, 2, 3]
    assert list(events.get(JOB)) == placed
    assert list(events.get(JOB, gt=1, lte=2)) == placed[1:2]
    assert list(events.get(JOB, desc=True, limit=2)) == [placed[2], placed[1]]
    assert list(events.get(UUID(int=9))) == []


def test_stored_events_move_the_read_models(
    events: EventStore[UUID], states: PostgresStates
) -> None:
    events.put([Placed(JOB, 1, registered())])
    (first, *_) = run_events(JOB, 1)
    events.put(run_events(JOB, 1, Attempted(attempt=1, lease=30.0)))

    job, run = states.job(JOB), states.occurrence(first.originator_id)
    assert job is not None
    assert (job.next_fire, job.fires) == (START + MINUTE, 1)
    assert run is not None
    assert [state.id for state in states.unfinished(JOB)] == [run.id]
    assert (run.state, run.version) == ("running", 2)

    events.put([Placed(run.id, 3, Succeeded(attempt=1))])
    assert states.unfinished(JOB) == []


def test_what_a_trigger_and_a_backfill_order_waits_in_the_index(
    events: EventStore[UUID], states: PostgresStates
) -> None:
    extra = occurrence_id(JOB, START + 50 * MINUTE, "trigger", "x")
    triggered = Triggered(occurrence_id=extra, fire_time=START + 50 * MINUTE, request_id="x")
    missed = [START - 2 * MINUTE, START - MINUTE]
    asked = BackfillRequested(start=missed[0], end=missed[-1], fires=missed)
    events.put([Placed(JOB, 1, registered()), Placed(JOB, 2, triggered), Placed(JOB, 3, asked)])

    waiting = {(run.id, run.kind, run.state, run.version) for run in states.unfinished(JOB)}
    assert waiting == {
        (extra, "trigger", "scheduled", 0),
        *((occurrence_id(JOB, at), "backfill", "scheduled", 0) for at in missed),
    }


def test_a_conflict_stores_nothing_of_what_came_with_it(
    events: EventStore[UUID], recorder: PostgresLogRecorder
) -> None:
    events.put([Placed(JOB, 1, registered())])
    other = UUID(int=2)

    for version in (1, 3, 0):
        late = Placed(JOB, version, registered() if version == 1 else Paused())
        with pytest.raises(IntegrityError):
            events.put([Placed(other, 1, registered()), late])
    with pytest.raises(IntegrityError):
        events.put([Placed(JOB, 2, Paused()), Placed(JOB, 2, Paused())])

    assert recorder.select_events(other) == []
    assert recorder.max_notification_id() == 1


def test_of_two_who_store_the_next_event_at_once_one_is_refused(
    events: EventStore[UUID], database: Database
) -> None:
    events.put([Placed(JOB, 1, registered())])
    log, states = PostgresLog(database), PostgresStates(database)
    faster, _ = decide_on_job(states.job(JOB), JOB, [Paused(actor="faster")])
    arguments = ", ".join(["%b"] * ARGUMENTS)
    with ThreadPoolExecutor(1) as threads, database.session() as holder:
        with holder.transaction():
            append = database.sql(f"SELECT :schema.append({arguments})")
            holder.execute(append, packed([faster], None, 60.0))
            # The slower one reads what is committed, and waits for the lock.
            slower = [Placed(JOB, 2, Paused(actor="slower")), Placed(UUID(int=2), 1, registered())]
            waiting = threads.submit(events.put, slower)
            until_one_waits_for(holder, database)
        with pytest.raises(IntegrityError, match="has changed"):
            waiting.result(timeout=20)

    assert [e.event.actor for e in log.stream(JOB, after=1)] == ["faster"]
    assert states.job(UUID(int=2)) is None


def until_one_waits_for(holder: Connection, database: Database) -> None:
    question = database.sql(
        "SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
    )
    deadline = monotonic() + 20
    while not database.query(question, (holder.info.backend_pid,)):
        assert monotonic() < deadline
        sleep(0.01)


@pytest.mark.parametrize(
    ("topic", "state", "why"),
    [
        ("orders.placed", b"{}", "does not know its topic"),
        ("job.paused.1", b"\x93secret", "unreadable state"),
        ("job.paused.1", b"{}", "a job begins with"),
        ("occurrence.attempted.1", b'{"attempt":1,"lease":30}', "begins with its claim"),
        ("partition.released.1", b'{"partition":1,"instance":"a"}', "no partition with that"),
    ],
)
def test_what_horologs_processes_could_not_read_is_refused(
    recorder: PostgresLogRecorder, topic: str, state: bytes, why: str
) -> None:
    with pytest.raises(DataError, match=why):
        recorder.insert_events([StoredEvent(JOB, 1, topic, state)])
    assert recorder.max_notification_id() is None


def test_a_claim_of_a_job_that_is_not_there_is_refused(events: EventStore[UUID]) -> None:
    with pytest.raises(DataError, match="the log has no job"):
        events.put(run_events(JOB, 1))


def test_a_death_is_stored_whole(events: EventStore[UUID]) -> None:
    events.put([Placed(JOB, 1, registered())])
    failed = Failed(attempt=1, kind="permanent", error="gone")
    with pytest.raises(DataError, match="in the same call"):
        events.put(run_events(JOB, 1, Attempted(attempt=1, lease=30.0), failed))


def test_a_plain_namespace_takes_any_topic_and_any_state(database: Database) -> None:
    recorder = PostgresLogRecorder(database, plain=True)
    events = EventStore(HorologMapper(compressor=ZlibCompressor()), recorder)
    placed = Placed(JOB, 1, Paused(actor="ann"))
    events.put([placed])
    recorder.insert_events([StoredEvent(UUID(int=2), 1, "orders.placed", b"\x00\xff")])

    assert list(events.get(JOB)) == [placed]
    assert recorder.select_events(UUID(int=2))[0].state == b"\x00\xff"
    assert PostgresStates(database).job(JOB) is None


def test_an_election_and_a_release_move_the_partition(
    events: EventStore[UUID], database: Database
) -> None:
    stream = partition_stream(database.namespace, 5)
    elected = Elected(partition=5, instance="a", lease=30.0)
    events.put([Placed(stream, 1, elected)])
    question = database.sql(
        "SELECT version, instance, token, lease_until > now() FROM :schema.partitions"
        " WHERE partition = 5"
    )
    assert database.query(question) == [(1, "a", 1, True)]

    with pytest.raises(IntegrityError):
        events.put([Placed(stream, 2, elected.model_copy(update={"instance": "b"}))])
    events.put([Placed(stream, 2, Released(partition=5, instance="a"))])
    assert database.query(question) == [(2, None, None, False)]


def test_the_notification_log_has_sections(
    events: EventStore[UUID], recorder: PostgresLogRecorder
) -> None:
    events.put([Placed(UUID(int=n), 1, registered(n)) for n in range(1, 8)])
    log = LocalNotificationLog(recorder, section_size=3)

    first = log["1,3"]
    assert [item.id for item in first.items] == [1, 2, 3]
    assert (first.id, first.next_id) == ("1,3", "4,6")
    last = log["7,9"]
    assert ([item.originator_id for item in last.items], last.next_id) == ([UUID(int=7)], None)
    assert [item.id for item in log.select(start=2, limit=3, stop=3)] == [2, 3]


def test_the_notification_log_has_both_tables_in_one_order(
    events: EventStore[UUID], recorder: PostgresLogRecorder
) -> None:
    events.put([Placed(JOB, 1, registered())])
    events.put(run_events(JOB, 1, Attempted(attempt=1, lease=30.0)))
    events.put([Placed(JOB, 2, Paused())])

    found = recorder.select_notifications(start=1, limit=10)
    assert [(n.id, n.topic) for n in found] == [
        (1, "job.registered.1"),
        (2, "occurrence.claimed.1"),
        (3, "occurrence.attempted.1"),
        (4, "job.paused.1"),
    ]
    attempts = recorder.select_notifications(None, 10, topics=["occurrence.attempted.1"])
    assert [n.id for n in attempts] == [3]


def test_events_and_a_followers_position_are_stored_together_or_not_at_all(
    events: EventStore[UUID], recorder: PostgresLogRecorder
) -> None:
    events.put([Placed(JOB, 1, registered())], tracking=Tracking("orders", 7))
    assert recorder.max_tracking_id("orders") == 7

    with pytest.raises(IntegrityError, match="has been at position 7"):
        events.put([Placed(JOB, 2, Paused())], tracking=Tracking("orders", 7))
    assert list(events.get(JOB, gt=1)) == []
    with pytest.raises(IntegrityError):
        events.put([Placed(JOB, 1, registered())], tracking=Tracking("orders", 8))
    assert recorder.max_tracking_id("orders") == 7


def test_a_namespace_that_is_not_there_is_said(database_url: str) -> None:
    missing = Database(database_url, "nothing_here")
    recorder = PostgresLogRecorder(missing)
    with pytest.raises(ProgrammingError, match="horolog migrate"):
        recorder.max_notification_id()
    missing.close()


def test_a_server_that_is_away_is_an_operational_error() -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/none", "away", connect_timeout_s=0.2)
    recorder = PostgresLogRecorder(away, plain=True, patience_s=0.0)
    with pytest.raises(OperationalError):
        recorder.insert_events([StoredEvent(JOB, 1, "orders.placed", b"")])
    away.close()
