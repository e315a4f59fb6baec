"""The worker of the fault tests: every handler leaves its effect in a table, each in its own way.

    transactional, transactional-def   on run.connection: with Succeeded, or not at all
    idempotent                         INSERT … ON CONFLICT on the key: once, whoever tries
    plain, plain-def                   a row for each attempt, at once

What each way promises is checked by :mod:`tests.faults.system.account`. Run as the commands do,
`horolog worker tests.faults.system.handlers:worker`; WORKER_SETTINGS is JSON.
"""

import asyncio
import json
import os
import time

import psycopg
from psycopg import sql

from horolog import Run, Worker

worker = Worker(**json.loads(os.environ.get("WORKER_SETTINGS", "{}")))

_URL = os.environ["HOROLOG_DATABASE_URL"]
_ROW = sql.SQL("INSERT INTO {} (handler, key, attempt) VALUES (%s, %s, %s)").format(
    sql.Identifier(os.environ["HOROLOG_NAMESPACE"], "effects")
)
_ROW_ONCE = _ROW + sql.SQL(" ON CONFLICT (key) WHERE handler = 'idempotent' DO NOTHING")


def _take_effect(statement: sql.Composed, handler: str, run: Run) -> None:
    """In a transaction of its own, over at once."""
    with psycopg.connect(_URL, autocommit=True, connect_timeout=2) as connection:
        connection.execute(statement, (handler, run.key, run.attempt))


@worker.handles("transactional", transactional=True)
async def transactional(run: Run, seconds: float = 0.0) -> None:
    await run.connection.execute(_ROW, ("transactional", run.key, run.attempt))
    await asyncio.sleep(seconds)


@worker.handles("transactional-def", transactional=True)
def transactional_def(run: Run, seconds: float = 0.0) -> None:
    run.connection.execute(_ROW, ("transactional-def", run.key, run.attempt))
    time.sleep(seconds)


@worker.handles("idempotent")
async def idempotent(run: Run, seconds: float = 0.0) -> None:
    await asyncio.to_thread(_take_effect, _ROW_ONCE, "idempotent", run)
    await asyncio.sleep(seconds)


@worker.handles("plain")
async def plain(run: Run, seconds: float = 0.0) -> None:
    await asyncio.to_thread(_take_effect, _ROW, "plain", run)
    await asyncio.sleep(seconds)


@worker.handles("plain-def")
def plain_def(run: Run, seconds: float = 0.0) -> None:
    _take_effect(_ROW, "plain-def", run)
    time.sleep(seconds)
