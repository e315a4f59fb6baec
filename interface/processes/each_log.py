"""One process for several logs: a loop for each, side by side, none of which waits for another.

    serve_each_log ─▶ run(log 0) ∥ run(log 1) ∥ …        until told to stop; each drains by itself

A log that is away when its loop begins is tried again and again, while the others go on; once it
runs, the loop itself waits for it. Whatever else ends one loop ends all: half a process that looks
whole would be noticed by nobody.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from horolog.domain.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from horolog.interface.processes.monitor import Monitor
from horolog.interface.settings import Settings

log = logging.getLogger("horolog")

AGAIN_S: Final = 2.0
"""How long a log that was away is left alone before it is tried again."""

Run = Callable[[Settings, asyncio.Event], Awaitable[None]]


async def serve_each_log(
    settings: Settings, run: Run, stop: asyncio.Event, monitor: Monitor | None = None
) -> None:
    """Runs ``run`` for the log that the settings choose, or for each of them, until ``stop``.

    Raises what it raises; where there are several logs, not ``StoreUnavailable``: that log is
    waited for.
    """
    logs = settings.each_log()
    if len(logs) == 1:
        await run(settings, stop)
        return
    if monitor is not None:
        monitor.logs = len(logs)
    ending = asyncio.Event()

    async def pass_on() -> None:
        await stop.wait()
        ending.set()

    async def serve(one: Settings) -> None:
        try:
            await _serve(one, run, ending)
        finally:
            ending.set()

    passing = asyncio.create_task(pass_on(), name="horolog-stop")
    tasks = [asyncio.create_task(serve(one), name=f"horolog {one.place}") for one in logs]
    try:
        results = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        passing.cancel()
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _serve(one: Settings, run: Run, ending: asyncio.Event) -> None:
    said = False
    while not ending.is_set():
        try:
            await run(one, ending)
        except (SchemaMissing, SchemaTooNew):
            raise
        except StoreUnavailable as error:
            if not said:
                log.warning("%s is away, the others go on: %s", one.place, error)
            said = True
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await ending.wait()
        else:
            return
