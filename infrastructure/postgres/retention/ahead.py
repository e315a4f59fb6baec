"""Months are made ahead by the scanners: an occurrence that finds none goes to the rest, from which
nothing is ever dropped, and its month can no longer be made.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import sleep
from typing import Final

import psycopg

from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.threaded import DedicatedThread

BEHIND: Final = 1
AHEAD: Final = 3
"""Months before and after the present one."""

EVERY_S: Final = 3600.0
TRIES: Final = 20
PAUSE_S: Final = 0.1

log = logging.getLogger("horolog.scanner")

_CREATE = f"SELECT :schema.create_month_partitions({BEHIND}, {AHEAD})"


def create_months_ahead(database: Database, connection: Connection) -> int:
    """How many partitions were made. The tables are waited for some milliseconds, a few times; if
    they could not be had there are months left, and the next call is early enough."""
    for _ in range(TRIES):
        try:
            row = connection.execute(database.sql(_CREATE)).fetchone()
            assert row is not None
            return row[0]
        except psycopg.errors.LockNotAvailable:
            sleep(PAUSE_S)
    return 0


@asynccontextmanager
async def months_kept_ahead(
    database: Database, thread: DedicatedThread, every_s: float = EVERY_S
) -> AsyncGenerator[None]:
    """Within, the months are made ahead, at once and then every hour."""
    keeping = asyncio.create_task(_keep(database, thread, every_s))
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def _keep(database: Database, thread: DedicatedThread, every_s: float) -> None:
    while True:
        try:
            await thread.call(_create, database)
        except StoreUnavailable as error:
            log.warning("months ahead could not be made, and are tried again: %s", error)
        await asyncio.sleep(every_s)


def _create(database: Database) -> int:
    with database.connection() as connection:
        return create_months_ahead(database, connection)
