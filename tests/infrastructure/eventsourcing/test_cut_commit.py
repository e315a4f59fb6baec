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
    from tests.infrastructure.eventsourcing.conftest import CuttingProxy

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


def insert_cut_off(
    recorder: PostgresLogRecorder,
    proxy: CuttingProxy,
    placed: Placed,
    tracking: Tracking | None = None,
) -> list[int]:
    """Stores an event whose states were read before, so that it is the append that is cut off."""
    stored = HorologMapper().to_stored_event(placed)
    batch = recorder._batch([stored])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "_batch", lambda _: batch)
        proxy.cut_the_next_answer()
        return list(recorder.insert_events([stored], tracking=tracking) or ())


def test_an_append_that_was_cut_off_recognises_its_own_events(
    cut_recorder: PostgresLogRecorder, recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    for version in range(3, 13):
        event = Paused(actor="me") if version % 2 == 0 else Resumed(next_fire=START, actor="me")
        (position,) = insert_cut_off(cut_recorder, proxy, Placed(JOB, version, event))
        (stored,) = recorder.select_notifications(position, 1)
        assert (stored.originator_version, stored.topic) == (version, event.topic)

    assert proxy.cuts == 10
    assert [e.originator_version for e in recorder.select_events(JOB)] == list(range(1, 13))


def test_a_tracked_append_that_was_cut_off_is_recognised_too(
    cut_recorder: PostgresLogRecorder, recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    resumed = Placed(JOB, 3, Resumed(next_fire=START))
    positions = insert_cut_off(cut_recorder, proxy, resumed, Tracking("log", 3))

    assert (positions, proxy.cuts) == ([3], 1)
    assert recorder.max_tracking_id("cut/log") == 3


def test_a_read_that_was_cut_off_is_read_again(
    cut_recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    proxy.cut_the_next_answer()
    EventStore(HorologMapper(), cut_recorder).put([Placed(JOB, 3, Resumed(next_fire=START))])
    proxy.cut_the_next_answer()
    assert len(cut_recorder.select_events(JOB)) == 3
    assert proxy.cuts == 2


def test_a_position_whose_commit_was_cut_off_is_not_taken_for_anothers(
    cut_recorder: PostgresLogRecorder, proxy: CuttingProxy
) -> None:
    proxy.cut_the_next_answer()
    cut_recorder.insert_tracking(Tracking("log", 3))
    assert proxy.cuts == 1
    with pytest.raises(IntegrityError):
        cut_recorder.insert_tracking(Tracking("log", 3))


def test_an_event_of_somebody_else_is_not_taken_for_ones_own(
    cut_recorder: PostgresLogRecorder,
    recorder: PostgresLogRecorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = HorologMapper().to_stored_event(Placed(JOB, 3, Resumed(next_fire=START, actor="me")))
    batch = cut_recorder._batch([mine])
    monkeypatch.setattr(cut_recorder, "_batch", lambda _: batch)
    other = Placed(JOB, 3, Resumed(next_fire=START, actor="another"))
    EventStore(HorologMapper(), recorder).put([other])
    # The connection dies before anything was done; the repetition meets the other's event.
    with psycopg.connect(recorder.database.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = %s AND pid <> pg_backend_pid() AND state = 'idle'",
            (f"horolog/{recorder.database.namespace}",),
        )

    with pytest.raises(IntegrityError):
        cut_recorder.insert_events([mine])
    assert HorologMapper().to_domain_event(recorder.select_events(JOB)[-1]) == other
