"""The clock of this process: steady, and running on while the machine sleeps."""

import asyncio
import contextlib

from horolog.infrastructure.postgres.clock import elapsed_s


class SystemClock:
    """As :class:`horolog.application.scanner.clock.Clock` promises.

    Where the system has such a clock, a suspension counts: a machine that wakes up does not believe
    in a lease that has ended meanwhile.
    """

    # Read six times for each run: without a call of Python's between.
    monotonic = staticmethod(elapsed_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        # Not with wait_for: up to Python 3.11 it swallows a cancellation that comes in the moment
        # in which the event is set, and whoever cancelled waits for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()
