"""Postgres goes and comes back: who asks hears so at once, and nobody meets a dead connection."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from psycopg import sql

from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.bounded import BoundedConnection
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.handler_transactions import PostgresTransactions
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate

SIZE = 3


@pytest.fixture
def database(own_servers: EmbeddedServers, namespace: str) -> Database:
    found = own_servers.find()
    assert found is not None
    database = Database(found.database_url, namespace, size=SIZE)
    migrate(database)
    return database


def asked_at_once(database: Database) -> list[list[Row]]:
    """Answers over as many connections as there may be."""
    together = Barrier(SIZE)

    def ask(_: int) -> list[Row]:
        with database.connection() as connection:
            together.wait(5)
            return connection.execute("SELECT 1").fetchall()

    with ThreadPoolExecutor(SIZE) as threads:
        return list(threads.map(ask, range(SIZE)))


def test_the_first_calls_after_a_restart_succeed(
    database: Database, own_servers: EmbeddedServers
) -> None:
    for mode in ("fast", "immediate"):
        assert asked_at_once(database) == [[(1,)]] * SIZE
        own_servers.stop_postgres(mode)
        own_servers.start_postgres()
        assert asked_at_once(database) == [[(1,)]] * SIZE
    database.close()


def test_while_it_is_away_each_call_says_so_at_once_and_the_first_after_it_succeeds(
    database: Database, own_servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: nobody waits for a place among the connections, or knocks a second time."""
    knocks: list[object] = []
    connect = BoundedConnection.connect

    def counted(*args: Any, **options: Any) -> Any:
        knocks.append(options["host"])
        return connect(*args, **options)

    monkeypatch.setattr(BoundedConnection, "connect", counted)
    database._timeout_s = 3_600.0  # pyright: ignore[reportPrivateUsage]
    own_servers.stop_postgres("immediate")
    for number in range(1, 2 * SIZE):
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            database.query(sql.SQL("SELECT 1"))
        assert len(knocks) == number
    own_servers.start_postgres()
    assert database.query(sql.SQL("SELECT 1")) == [(1,)]
    database.close()


async def test_a_transactional_handler_that_begins_after_a_restart_has_a_live_connection(
    database: Database, own_servers: EmbeddedServers
) -> None:
    transactions = PostgresTransactions(database, PostgresLog(database))
    for _ in range(2):
        async with transactions.begin_async() as first, transactions.begin_async() as second:
            for transaction in (first, second):
                await transaction.connection.execute("SELECT 1")
        with transactions.begin() as one, transactions.begin() as other:
            for transaction in (one, other):
                transaction.connection.execute("SELECT 1")
        await asyncio.to_thread(own_servers.stop_postgres)
        await asyncio.to_thread(own_servers.start_postgres)
    transactions.close()
    database.close()


def test_no_more_connections_are_opened_than_allowed(database: Database) -> None:
    with database.connection(), database.connection(), database.connection():
        database._timeout_s = 0.1  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(StoreUnavailable, match="no connection was free"):
            database.query(sql.SQL("SELECT 1"))
    assert database.query(sql.SQL("SELECT 1")) == [(1,)]
    database.close()


def test_what_was_left_within_a_transaction_is_not_given_to_the_next(database: Database) -> None:
    with database.connection() as connection:
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE left_over ()")
    with database.connection() as connection:
        assert connection.execute("SELECT to_regclass('left_over')").fetchall() == [(None,)]
    database.close()
