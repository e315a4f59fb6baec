"""News of the log in memory: what an append makes due soon, who is to stop, that it has grown."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from horolog.application.decision import Decision
from horolog.application.scanner.clock import microseconds

if TYPE_CHECKING:
    from horolog.infrastructure.simulated.log import SimulatedLog

PAGE = 100
"""Lines of one notification."""

MOST = 500
"""More rows than this are not named one by one."""


def news_of(
    accepted: Sequence[Decision], stamp: datetime, horizon_s: float
) -> Iterator[tuple[str, str]]:
    """What is told of an append, by channel; as the database's function ``append`` tells it."""
    until = stamp + timedelta(seconds=horizon_s)
    rows = [run for decision in accepted for run in decision.next_runs]
    soon = [
        (run.partition, microseconds(run.due_at), run.id)
        for run in (rows if horizon_s > 0 else ())
        if run.due_at is not None and run.due_at <= until
    ]
    lines = [f"{partition} {due_us} {identity}" for partition, due_us, identity in soon]
    if len(soon) > MOST:
        first: dict[int, int] = {}
        for partition, due_us, _ in soon:
            first[partition] = min(due_us, first.get(partition, due_us))
        lines = [f"{partition} {due_us} *" for partition, due_us in first.items()]
    for start in range(0, len(lines), PAGE):
        yield "due", "\n".join(lines[start : start + PAGE])
    stopping = [str(run.id) for run in rows if run.state == "stopping"]
    for start in range(0, len(stopping), PAGE):
        yield "stop", " ".join(stopping[start : start + PAGE])
    yield "log", ""


class SimulatedNews:
    """As :class:`horolog.application.scanner.news.HearsNews` promises, of one of the channels."""

    def __init__(self, log: "SimulatedLog", channel: str = "due") -> None:
        self._log = log
        self._channel = channel

    async def hear(
        self, heard: Callable[[str], None], connected: Callable[[], None], stop: asyncio.Event
    ) -> None:
        loop = asyncio.get_running_loop()

        def told(channel: str, payload: str) -> None:
            if channel == self._channel:
                loop.call_soon_threadsafe(heard, payload)

        self._log.listeners.append(told)
        try:
            loop.call_soon(connected)
            await stop.wait()
        finally:
            self._log.listeners.remove(told)
