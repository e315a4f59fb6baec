"""A connection that breaks after the commit and before the answer: nothing is lost, nothing is
doubled, and nobody is told that another was faster."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
import pytest
from eventsourcing.persistence import EventStore, IntegrityError, Tracking

from horolog.domain.definition import JobDefinition
from horolog.domain.job_events import Paused, Registered, Resumed
from horolog.domain.schedule import Every
from horolog.infrastructure.eventsourcing.mapper import HorologMapper, Placed
from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Database

if TYPE_CHECKING:
    from tests.infrastructure.conftest import CuttingProxy

START = datetime(2027, 1, 1, tzinfo=UTC)
JOB = UUID(int=1)


@pytest.fixture
def cut_recorder(database: Database, proxy: CuttingProxy) -> Generator[PostgresLogRecorder]:
    """A recorder behind the proxy, with a connection that has seen every statement once."""
    behind = Database(proxy.url, database.namespace, size=1)
    recorder = PostgresLogRecorder(behind, follower="cut")
    definition = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
    born = Registered(definition=definition, partition=3, next_fire=START)
    events = EventStore(HorologMapper(), recorder)
    events.put([Placed(JOB, 1, born)])
    events.put([Placed(JOB, 2, Paused())], tracking=Tracking("log", 1))
    recorder.insert_tracking(Tracking("log", 2))
    yield recorder
    behind.close()


def put_cut_off(
    recorder: PostgresLogRecorder, proxy: CuttingProxy, placed: Placed, **kwargs: Tracking
) -> int:
    """Puts an event of a job: its state is read, and the append that follows is cut off."""
    proxy.cut_an_answer(after=1)
    (recording,) = EventStore(HorologMapper(), recorder).put([placed], **kwargs)
    return recording.notification.id


def test_an_append_that_was_cut_off_recognises_its_own_events(
    cut_recorder: PostgresLogRecorder, recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    for version in range(3, 13):
        event = Paused(actor="me") if version % 2 == 0 else Resumed(next_fire=START, actor="me")
        position = put_cut_off(cut_recorder, proxy, Placed(JOB, version, event))
        (stored,) = recorder.select_notifications(position, 1)
        assert (stored.originator_version, stored.topic) == (version, event.topic)

    assert proxy.cuts == 10
    assert [e.originator_version for e in recorder.select_events(JOB)] == list(range(1, 13))


def test_a_tracked_append_that_was_cut_off_is_recognised_too(
    cut_recorder: PostgresLogRecorder, recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    resumed = Placed(JOB, 3, Resumed(next_fire=START))
    position = put_cut_off(cut_recorder, proxy, resumed, tracking=Tracking("log", 3))

    assert (position, proxy.cuts) == (3, 1)
    assert recorder.max_tracking_id("cut/log") == 3


def test_a_read_that_was_cut_off_is_read_again(
    cut_recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    proxy.cut_an_answer()
    EventStore(HorologMapper(), cut_recorder).put([Placed(JOB, 3, Resumed(next_fire=START))])
    proxy.cut_an_answer()
    assert len(cut_recorder.select_events(JOB)) == 3
    assert proxy.cuts == 2


def test_a_position_whose_commit_was_cut_off_is_not_taken_for_anothers(
    cut_recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    proxy.cut_an_answer()
    cut_recorder.insert_tracking(Tracking("log", 3))
    assert proxy.cuts == 1
    with pytest.raises(IntegrityError):
        cut_recorder.insert_tracking(Tracking("log", 3))


def test_an_event_of_somebody_else_is_not_taken_for_ones_own(
    recorder: PostgresLogRecorder, database: Database
) -> None:
    mine, others = (
        HorologMapper().to_stored_event(Placed(JOB, 3, Resumed(next_fire=START, actor=actor)))
        for actor in ("me", "another")
    )
    late = PostgresLogRecorder(Database(database.url, database.namespace), plain=True)
    early = PostgresLogRecorder(database, plain=True)
    assert late.max_notification_id() is None
    early.insert_events([others])
    # The connection of the late one dies unseen, before anything was done on it.
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            (f"horolog/{database.namespace}",),
        )

    with pytest.raises(IntegrityError):
        late.insert_events([mine])
    assert recorder.select_events(JOB) == [others]
    late.close()
