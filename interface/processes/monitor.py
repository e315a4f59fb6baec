"""What one process knows of itself: whether it lives, whether it can do its work, what it measured.

The loops are asked how they stand, and the event loop for signs of life; nothing here changes
anything. :mod:`horolog.interface.processes.health_server` answers with it.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from time import monotonic

from horolog.application.measured_appends import MeasuredLog
from horolog.application.measuring import Measures, Meter, Several
from horolog.application.metrics import metrics
from horolog.application.standing import GAUGES, Standing, together
from horolog.application.tracing import UNTRACED, Spans
from horolog.infrastructure.postgres.threaded import ThreadedLog
from horolog.interface.settings import Settings

BEAT_S = 0.5
LOOK_EVERY_S = 10.0
"""The namespace is looked at this often at most, however often metrics are asked for."""


class Monitor:
    """What there is to know of the process. ``dead_after_s``: a loop that has not answered for so
    long is dead. ``namespace``: whose tables and queue ``/metrics`` tells of too. ``spans`` is
    where traces go."""

    def __init__(
        self,
        *,
        dead_after_s: float,
        namespace: Settings | None = None,
    ) -> None:
        self.meter = Meter()
        self.measures: Measures = self.meter
        self.spans: Spans = UNTRACED
        self._dead_after_s = dead_after_s
        self._namespace = namespace
        self._standings: list[Callable[[], Standing]] = []
        self.logs = 1
        self._beat = monotonic()
        self._looking = Lock()
        self._looked: tuple[float, str] | None = None

    def join(self, listener: Measures) -> None:
        """One more who hears of every measurement; before the loops begin."""
        self.measures = Several((self.measures, listener))

    def standing(self) -> Standing | None:
        """How the process stands, while it runs: its loops together, one for each log."""
        standings = [standing() for standing in self._standings]
        if not standings:
            return None
        troubles = [trouble for one in standings for trouble in one.troubles]
        if len(standings) < self.logs:
            troubles.append(f"{self.logs - len(standings)} of {self.logs} logs are not served")
        return Standing(troubles, together([one.gauges for one in standings]))

    @contextmanager
    def watching(self, standing: Callable[[], Standing]) -> Generator[None]:
        """Asks ``standing`` how the process stands, and the running loop for signs of life."""
        beats = asyncio.get_running_loop().create_task(self._beats(), name="horolog-monitor")
        self._standings.append(standing)
        try:
            yield
        finally:
            self._standings.remove(standing)
            beats.cancel()

    async def _beats(self) -> None:
        while True:
            self._beat = monotonic()
            await asyncio.sleep(BEAT_S)

    @property
    def loop_age_s(self) -> float:
        return max(0.0, monotonic() - self._beat - BEAT_S)

    def live(self) -> list[str]:
        """What is wrong with the process itself: nothing, while it lives."""
        if self.loop_age_s > self._dead_after_s:
            return [f"the event loop has not answered for {self.loop_age_s:.0f} s"]
        return []

    def ready(self) -> list[str]:
        """What keeps the process from its work."""
        standing = self.standing()
        return ["the process starts or stops"] if standing is None else standing.troubles

    def text(self) -> str:
        standing = self.standing() or Standing(["starts"])
        gauges = {
            **standing.gauges,
            "ready": float(standing.ready),
            "loop_age_seconds": self.loop_age_s,
        }
        lines = [self.meter.text()]
        for name, value in gauges.items():
            lines.append(f"# HELP horolog_{name} {GAUGES[name]}\n# TYPE horolog_{name} gauge\n")
            lines.append(f"horolog_{name} {value!r}\n")
        if self._namespace is not None:
            lines.append(self._look(self._namespace))
        return "".join(lines)

    def _look(self, settings: Settings) -> str:
        from horolog.interface.cli.looks import look_at_queue, look_at_store

        with self._looking:
            if self._looked is None or monotonic() - self._looked[0] > LOOK_EVERY_S:
                store, _ = look_at_store(settings)
                queue, _ = look_at_queue(settings)
                self._looked = (monotonic(), metrics(store, queue))
            return self._looked[1]


def measured(log: ThreadedLog, monitor: Monitor | None, writer: str) -> ThreadedLog | MeasuredLog:
    """The log, with a watch beside it where somebody listens."""
    return log if monitor is None else MeasuredLog(log, monitor.measures, writer)


@contextmanager
def watched(monitor: Monitor | None, standing: Callable[[], Standing]) -> Generator[None]:
    """For as long as the process's loops run."""
    if monitor is None:
        yield
        return
    with monitor.watching(standing):
        yield
