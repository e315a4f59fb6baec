"""Leases in Postgres: by its clock, in one round trip, never another's."""

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


async def test_a_renewal_shows_the_living_and_every_partition(
    database: Database, leases: PostgresLeases
) -> None:
    await renew(leases, "b")
    view = await renew(leases, "a")
    assert view.alive == ["a", "b"]
    assert [lease.state.partition for lease in view.leases] == [0, 1, 2, 3]
    assert not any(lease.running for lease in view.leases)
    [[now_us]] = database.query(
        database.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    )
    assert 0 <= now_us - view.now_us < 5_000_000


async def test_an_election_makes_a_lease_that_keeps_others_out(
    database: Database, leases: PostgresLeases
) -> None:
    lease = (await renew(leases, "a")).leases[0]
    assert elect(database, "a", lease) == "accepted"
    assert elect(database, "b", lease) == "conflict", "decided from an old version"
    taken = (await renew(leases, "b")).leases[0]
    assert (taken.state.instance, taken.state.token, taken.running) == ("a", 1, True)
    assert elect(database, "b", taken) == "conflict", "the lease runs"


async def test_only_ones_own_lease_under_its_token_is_extended(
    database: Database, leases: PostgresLeases
) -> None:
    lease = (await renew(leases, "a")).leases[2]
    elect(database, "a", lease, lease_s=0.0)
    assert not (await renew(leases, "b", {2: 1})).leases[2].running, "not b's"
    assert not (await renew(leases, "a", {2: 9})).leases[2].running, "not under that token"
    assert (await renew(leases, "a", {2: 1})).leases[2].running
    elect_again = (await renew(leases, "b")).leases[2]
    assert elect(database, "b", elect_again) == "conflict"


async def test_a_lease_that_ended_is_taken_over_under_a_greater_token(
    database: Database, leases: PostgresLeases
) -> None:
    elect(database, "a", (await renew(leases, "a")).leases[1], lease_s=0.0)
    ended = (await renew(leases, "b")).leases[1]
    assert elect(database, "b", ended) == "accepted"
    successor = (await renew(leases, "a", {1: 1})).leases[1]
    assert (successor.state.instance, successor.state.token) == ("b", 2)


async def test_an_instance_that_left_or_fell_silent_is_not_among_the_living(
    leases: PostgresLeases,
) -> None:
    await renew(leases, "silent", lease_s=0.0)
    await renew(leases, "gone")
    await leases.leave("gone")
    assert (await renew(leases, "a")).alive == ["a"]


async def test_publishing_positions_only_grow_and_only_by_their_leader(
    database: Database, leases: PostgresLeases
) -> None:
    elect(database, "a", (await renew(leases, "a")).leases[3])
    await leases.mark_published("a", {3: 1, 0: 1}, {3: 50, 0: 50})
    await leases.mark_published("a", {3: 1}, {3: 40})
    await leases.mark_published("b", {3: 1}, {3: 60})
    await leases.mark_published("a", {3: 2}, {3: 70})
    published = [lease.published for lease in (await renew(leases, "a")).leases]
    assert published == [0, 0, 0, 50]


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
