"""The clock of this process: steady, and running on while the machine sleeps."""

import asyncio
import contextlib

from horolog.infrastructure.postgres.clock import elapsed_s


class SystemClock:
    """As :class:`horolog.application.scanner.clock.Clock` promises.

    Where the system has such a clock, a suspension counts: a machine that wakes up does not believe
    in a lease that has ended meanwhile.
    """

    def monotonic(self) -> float:
        return elapsed_s()

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), timeout_s)
