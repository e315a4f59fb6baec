"""A worker process for fault tests: its handlers take effect in a table, slowly or fatally.

python worker_program.py '{"concurrency": 5, "lease_s": 2, …}'
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from horolog import Run, Worker

worker = Worker(**json.loads(sys.argv[1]))
_EFFECT = sql.SQL("INSERT INTO {} (key) VALUES (%s)").format(
    sql.Identifier(os.environ["HOROLOG_NAMESPACE"], "effects")
)
_URL = os.environ["HOROLOG_DATABASE_URL"]


@worker.handles("plain")
async def plain(run: Run, seconds: float = 0.0) -> None:
    """Takes effect at once, in a transaction of its own, and goes on for a while."""
    async with await psycopg.AsyncConnection.connect(_URL, autocommit=True) as connection:
        await connection.execute(_EFFECT, (run.key,))
    await asyncio.sleep(seconds)


@worker.handles("transactional", transactional=True)
async def transactional(run: Run, seconds: float = 0.0) -> None:
    """Takes effect in the transaction of its success."""
    await run.connection.execute(_EFFECT, (run.key,))
    await asyncio.sleep(seconds)


@worker.handles("transactional-def", transactional=True)
def transactional_def(run: Run, seconds: float = 0.0) -> None:
    run.connection.execute(_EFFECT, (run.key,))
    time.sleep(seconds)


@worker.handles("thread")
def thread(run: Run, seconds: float = 0.0) -> str:
    """Takes effect at its end, from a thread that nothing cancels."""
    time.sleep(seconds)
    with psycopg.connect(_URL, autocommit=True) as connection:
        connection.execute(_EFFECT, (run.key,))
    return f"by {os.getpid()}"


@worker.handles("until")
def until(run: Run, path: str) -> None:
    """Takes effect at once, and goes on until the file is there."""
    with psycopg.connect(_URL, autocommit=True) as connection:
        connection.execute(_EFFECT, (run.key,))
    while not Path(path).exists():
        time.sleep(0.02)


@worker.handles("paced")
async def paced(run: Run, seconds: list[float]) -> None:
    """Takes as long as is said for the attempt."""
    await asyncio.sleep(seconds[run.attempt - 1])


@worker.handles("exits")
async def exits(run: Run, **_: Any) -> None:
    """Takes its process with it."""
    with psycopg.connect(_URL, autocommit=True) as connection:
        connection.execute(_EFFECT, (run.key,))
    os._exit(137)


if __name__ == "__main__":
    worker.run()
