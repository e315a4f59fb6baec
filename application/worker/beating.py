"""The thread of the heartbeats: it goes on while the event loop is blocked.

As a port, so that a simulation can beat in its own time.
"""

import asyncio
import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Protocol

log = logging.getLogger("horolog.worker")


class KeepsBeat(Protocol):
    """Beats for one worker, once."""

    def start(self, beat: Callable[[], None], interval_s: float, last: Callable[[], None]) -> None:
        """Calls ``beat`` now and every ``interval_s``, whatever it raises; ``last`` at the end."""
        ...

    def end(self) -> None:
        """No beat follows but the last one; from any thread."""
        ...

    async def stop(self) -> None:
        """Ends it and waits for the last beat, but not for long."""
        ...


class BeatThread:
    """As :class:`KeepsBeat` promises, in a daemon thread."""

    def __init__(self) -> None:
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self, beat: Callable[[], None], interval_s: float, last: Callable[[], None]) -> None:
        arguments = (beat, interval_s, last)
        self._thread = Thread(
            target=self._beat, args=arguments, name="horolog-heartbeats", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        self._stop.set()

    async def stop(self) -> None:
        self.end()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 5.0)

    def _beat(self, beat: Callable[[], None], interval_s: float, last: Callable[[], None]) -> None:
        while True:
            try:
                beat()
            except Exception:  # a thread's top: no beat must be the last one
                log.exception("a heartbeat failed")
            if self._stop.wait(interval_s):
                break
        last()
