"""The doctor's look at Postgres and NATS: what is there is counted, whatever the state."""

from collections.abc import Generator
from datetime import UTC, datetime, timedelta

import pytest

from horolog import Every, Once, Scheduler
from horolog.domain.errors import QueueUnavailable, SchemaMissing
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.nats.health import NatsHealth
from horolog.infrastructure.nats.stream import ReadyStream
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.health import PostgresHealth
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.presence import PostgresPresence


@pytest.fixture
def database(database_url: str, namespace: str) -> Generator[Database]:
    opened = Database(database_url, namespace)
    yield opened
    opened.close()


def test_an_empty_namespace_is_read(database: Database) -> None:
    migrate(database, partitions=8)
    health = PostgresHealth(database).store_health()
    assert health.partitions == health.unowned == 8
    assert health.position == 0
    assert health.schema == health.schema_of_code
    assert abs(health.clock_offset_s) < 1
    assert health.jobs == {}
    assert health.dead_letters == []


def test_jobs_lateness_waiting_and_processes_are_counted(database: Database) -> None:
    migrate(database)
    late = datetime.now(UTC) - timedelta(seconds=30)
    with Scheduler(database.url, namespace=database.namespace) as scheduler:
        scheduler.register("late", schedule=Once(late))
        paused = scheduler.register("paused", schedule=Every(60))
        scheduler.pause(paused.id)
        scheduler.trigger(scheduler.register("ordered", schedule=Every(3600)).id)
        position = scheduler.position()
    presence = PostgresPresence(database, "w1", "worker")
    presence.announce({"handlers": ["ping"]}, 60)
    health = PostgresHealth(database).store_health()
    assert health.jobs == {"active": 2, "paused": 1}
    assert health.late_fires == 2
    assert 29 < health.lateness_s < 60
    assert [(w.name, w.state, w.count) for w in health.waiting] == [("ordered", "scheduled", 1)]
    assert health.position == position == 5
    assert [worker.handlers for worker in health.alive("worker")] == [["ping"]]
    presence.leave()
    assert PostgresHealth(database).store_health().alive("worker") == []


def test_a_namespace_without_a_schema_is_refused(database: Database) -> None:
    with pytest.raises(SchemaMissing, match="horolog migrate"):
        PostgresHealth(database).store_health()


async def test_the_queue_is_read_with_and_without_its_stream(nats_url: str, namespace: str) -> None:
    look = NatsHealth(nats_url, namespace)
    before = await look.queue_health()
    assert not before.stream
    client, jetstream = await connect(nats_url)
    stream = ReadyStream(jetstream, namespace)
    await stream.ensure_queue("billing")
    await jetstream.publish(stream.subject("billing"), b"run")
    after = await look.queue_health()
    await client.close()
    assert after.stream
    assert after.messages == 1
    assert [(queue.queue, queue.waiting) for queue in after.queues] == [("billing", 1)]


async def test_a_nats_that_is_away_is_told() -> None:
    with pytest.raises(QueueUnavailable):
        await NatsHealth("nats://127.0.0.1:1", "nowhere").queue_health()
