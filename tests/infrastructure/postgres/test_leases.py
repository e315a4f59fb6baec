"""Leases in Postgres: what they promise beside the contract that every store keeps."""

import asyncio
from collections.abc import Iterator

import pytest

from horolog.application.decision import decide_on_partition
from horolog.application.log import Fences
from horolog.application.scanner.leadership import Lease, View
from horolog.domain.origin import Origin
from horolog.domain.partition import decide_election
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.leases import PostgresLeases
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.threaded import DedicatedThread

ME = Origin(actor="test")


@pytest.fixture
def database(database_url: str, namespace: str) -> Iterator[Database]:
    database = Database(database_url, namespace)
    migrate(database, partitions=4)
    yield database
    database.close()


@pytest.fixture
def leases(database: Database) -> Iterator[PostgresLeases]:
    thread = DedicatedThread("leases")
    yield PostgresLeases(database, thread, role="scanner")
    thread.close()


async def renew(
    leases: PostgresLeases, who: str, tokens: dict[int, int] | None = None, lease_s: float = 30.0
) -> View:
    return await leases.renew(who, tokens or {}, lease_s=lease_s, details={"queue_away": ""})


def elect(database: Database, who: str, lease: Lease, lease_s: float = 30.0) -> str:
    event = decide_election(lease.state, who, lease_s, origin=ME)
    decision, _ = decide_on_partition(lease.state, [event], lease_s)
    return PostgresLog(database).append([decision], Fences(who, {})).verdicts[0]


async def test_a_renewal_waits_for_nobody_who_holds_a_partition(
    database: Database, leases: PostgresLeases
) -> None:
    for lease in (await renew(leases, "a")).leases:
        elect(database, "a", lease, lease_s=0.0)
    with database.session() as other:
        other.autocommit = False
        other.execute(
            database.sql("UPDATE :schema.partitions SET published = 1 WHERE partition = 1")
        )
        tokens = dict.fromkeys(range(4), 1)
        view = await asyncio.wait_for(renew(leases, "a", tokens), 5)
        other.rollback()
    assert [lease.running for lease in view.leases] == [True, False, True, True]
