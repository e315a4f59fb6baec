"""The workers of the overload: few hands for slow work, and a queue of quick work beside it.

`horolog worker tests.faults.overload.handlers:worker`; HANDS is how many runs of the slow queue one
worker takes at once.
"""

import asyncio
import os

from horolog import Run, Worker

SECONDS = 0.1
"""What a slow run takes: a worker does as many a second as it has hands, divided by this."""

worker = Worker(concurrency=200, queues={"slow": int(os.environ.get("HANDS", "2")), "quick": None})


@worker.handles("slow")
async def slow(run: Run) -> None:
    del run
    await asyncio.sleep(SECONDS)


@worker.handles("quick")
async def quick(run: Run) -> None:
    del run
