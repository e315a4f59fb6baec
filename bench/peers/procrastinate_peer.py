"""procrastinate: psycopg 3 async, many tasks at once in one worker, finished jobs kept."""

import asyncio
from datetime import UTC, datetime, timedelta
from time import perf_counter

import procrastinate
import uvloop
from peer import Arguments, told

CONCURRENCY = 50


async def main(arguments: Arguments) -> None:
    connector = procrastinate.PsycopgConnector(conninfo=arguments.url, max_size=CONCURRENCY)
    app = procrastinate.App(connector=connector)
    began: list[float] = []
    done = 0
    finished = asyncio.Event()

    @app.task(name="ping")
    async def ping() -> None:
        nonlocal done
        if not began:
            began.append(perf_counter())
        done += 1
        if done == arguments.jobs:
            finished.set()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        far = datetime.now(UTC) + timedelta(days=300)
        for count, at in ((arguments.others, far), (arguments.jobs, None)):
            for start in range(0, count, 1_000):
                n = min(1_000, count - start)
                await ping.configure(schedule_at=at).batch_defer_async(*({} for _ in range(n)))
        worker = asyncio.create_task(
            app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
        )
        await finished.wait()
        left = "SELECT count(*)::int AS n FROM procrastinate_jobs WHERE status = 'doing'"
        while (await connector.execute_query_one_async(left))["n"]:
            await asyncio.sleep(0.02)
        told(arguments.jobs, perf_counter() - began[0])
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


if __name__ == "__main__":
    uvloop.run(main(Arguments.read()))
