"""pgqueuer: asyncpg, uvloop, durable tables, large dequeue batches, async entry points."""

import asyncio
from datetime import timedelta
from time import perf_counter

import asyncpg
import uvloop
from peer import Arguments, told
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

BATCH = 500


async def main(arguments: Arguments) -> None:
    connection = await asyncpg.connect(arguments.url)
    queries = Queries.from_asyncpg_connection(connection)
    manager = QueueManager(queries)
    await queries.install()
    for count, after in ((arguments.others, timedelta(days=300)), (arguments.jobs, None)):
        for start in range(0, count, 5_000):
            n = min(5_000, count - start)
            await queries.enqueue(["ping"] * n, [b"{}"] * n, [0] * n, [after] * n)
    await connection.execute("VACUUM ANALYZE")
    began: list[float] = []

    @manager.entrypoint("ping")
    async def ping(_: Job) -> None:
        if not began:
            began.append(perf_counter())

    async def until_drained() -> float:
        query = (
            "SELECT count(*) FROM (SELECT FROM pgqueuer WHERE execute_after <= now() LIMIT 1) one"
        )
        watcher = await asyncpg.connect(arguments.url)
        while not began or await watcher.fetchval(query):
            await asyncio.sleep(0.02)
        ended = perf_counter()
        manager.shutdown.set()
        await watcher.close()
        return ended

    drained = asyncio.create_task(until_drained())
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.continuous)
    told(arguments.jobs, await drained - began[0])
    await connection.close()


if __name__ == "__main__":
    uvloop.run(main(Arguments.read()))
