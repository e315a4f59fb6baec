"""Time for the loops of scanner and worker: a clock that never steps, waits that can end early."""

import asyncio

from horolog.infrastructure.postgres.clock import elapsed_s


class LoopClock:
    """As :class:`horolog.application.scanner.clock.Clock` promises."""

    def monotonic(self) -> float:
        return elapsed_s()

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await event.wait()
        except TimeoutError:
            return
