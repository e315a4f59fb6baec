"""Whichever driver the client has, a rollback takes the command with it and a commit keeps it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from horolog import AsyncScheduler, Every, Scheduler, UnknownJob
from horolog.infrastructure.postgres.database import Database

Opened = tuple[Any, Callable[[], Any], Callable[[], Any]]
"""A connection of some driver, its commit and its rollback."""


@contextmanager
def psycopg_dicts(url: str) -> Generator[Opened]:
    with psycopg.connect(url, row_factory=dict_row) as connection:  # pyright: ignore[reportArgumentType]
        yield connection, connection.commit, connection.rollback


@contextmanager
def psycopg2_connection(url: str) -> Generator[Opened]:
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(url)
    yield connection, connection.commit, connection.rollback
    connection.close()


@contextmanager
def sqlalchemy_connection(url: str) -> Generator[Opened]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    engine.dispose()


@contextmanager
def sqlalchemy_session(url: str) -> Generator[Opened]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with orm.Session(engine) as session:
        yield session, session.commit, session.rollback
    engine.dispose()


@pytest.mark.parametrize(
    "opened", [psycopg_dicts, psycopg2_connection, sqlalchemy_connection, sqlalchemy_session]
)
def test_a_sync_driver(
    opened: Callable[[str], AbstractContextManager[Opened]],
    database: Database,
    scheduler: Scheduler,
) -> None:
    with opened(database.url) as (connection, commit, rollback):
        gone = scheduler.register("a", schedule=Every(60), connection=connection)
        rollback()
        kept = scheduler.register("a", schedule=Every(60), key="k", connection=connection)
        scheduler.pause(kept.id, connection=connection)
        commit()
    assert scheduler.job(kept.id).status == "paused"
    with pytest.raises(UnknownJob):
        scheduler.job(gone.id)


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncGenerator[Opened]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncGenerator[Opened]:
    asyncpg = pytest.importorskip("asyncpg")
    at = conninfo_to_dict(url)
    connection = await asyncpg.connect(
        host=at["host"], port=at.get("port"), user=at.get("user"), database=at.get("dbname")
    )
    transactions = [connection.transaction()]
    await transactions[0].start()

    async def rollback() -> None:
        await transactions[0].rollback()
        transactions[0] = connection.transaction()
        await transactions[0].start()

    async def commit() -> None:
        await transactions[0].commit()

    yield connection, commit, rollback
    await connection.close()


@asynccontextmanager
async def sqlalchemy_async_session(url: str) -> AsyncGenerator[Opened]:
    asyncio = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asyncio.create_async_engine(
        "postgresql+psycopg://", async_creator=lambda: psycopg.AsyncConnection.connect(url)
    )
    async with asyncio.AsyncSession(engine) as session:
        yield session, session.commit, session.rollback
    await engine.dispose()


@pytest.mark.parametrize("opened", [psycopg_async, asyncpg_connection, sqlalchemy_async_session])
async def test_a_driver_of_asyncio(opened: Callable[[str], Any], database: Database) -> None:
    async with AsyncScheduler(database.url, namespace=database.namespace) as client:
        async with opened(database.url) as (connection, commit, rollback):
            gone = await client.register("a", schedule=Every(60), connection=connection)
            await rollback()
            kept = await client.register("a", schedule=Every(60), key="k", connection=connection)
            await client.pause(kept.id, connection=connection)
            await commit()
        assert (await client.job(kept.id)).status == "paused"
        with pytest.raises(UnknownJob):
            await client.job(gone.id)
