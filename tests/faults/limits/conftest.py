"""Two scanners and a worker on real servers, and a sink that notes when each run was under way."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from horolog import Run, Scheduler, Settings, Worker, WorkerSettings
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.scanner import run_scanner
from horolog.interface.processes.worker import run_worker

PARTITIONS = 8


@dataclass
class Sink:
    """When each run began and ended (monotonic seconds), by its number."""

    began: dict[int, float] = field(default_factory=dict[int, float])
    ended: dict[int, float] = field(default_factory=dict[int, float])

    def most_at_once(self) -> int:
        changes = [(at, 1) for at in self.began.values()] + [(at, -1) for at in self.ended.values()]
        under_way = most = 0
        for _, change in sorted(changes):
            under_way += change
            most = max(most, under_way)
        return most


class Stage:
    """One namespace; what its worker does is in the sinks, by handler."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.database_url(), settings.namespace)
        migrate(self.database, partitions=PARTITIONS)
        self.scheduler = Scheduler(settings=settings)
        self.sinks: dict[str, Sink] = {}
        self.worker = Worker()
        self.signals = [Signals(), Signals()]
        for name in ("work", "other"):
            self._handle(name)

    def _handle(self, name: str) -> None:
        sink = self.sinks[name] = Sink()

        @self.worker.handles(name)
        async def _(run: Run, number: int = 0, seconds: float = 0.0, fails: int = 0) -> None:
            sink.began[number] = time.monotonic()
            await asyncio.sleep(seconds)
            sink.ended[number] = time.monotonic()
            if run.attempt <= fails:
                raise ConnectionError("not yet")

    @asynccontextmanager
    async def running(self, scanners: int = 2, **settings: Any) -> AsyncGenerator[None]:
        """Scanners and a worker, stopped gracefully at the end."""
        place = self.settings
        urls = place.database_url(), place.nats_url(), place.namespace
        async with AsyncExitStack() as stack:
            for signals in self.signals[:scanners]:
                await _stoppable(
                    stack,
                    lambda stop, signals=signals: run_scanner(
                        *urls, ScannerSettings(**settings), stop, signals=signals
                    ),
                )
            await _stoppable(
                stack,
                lambda stop: run_worker(
                    self.worker,
                    database_url=urls[0],
                    nats_url=urls[1],
                    namespace=urls[2],
                    stop=stop,
                    settings=WorkerSettings(concurrency=200),
                ),
            )
            yield

    def ask(self, statement: str, params: Any = None) -> list[Any]:
        return self.database.query(self.database.sql(statement), params)

    def leaders(self) -> int:
        return len(
            self.ask("SELECT DISTINCT instance FROM :schema.partitions WHERE instance IS NOT NULL")
        )

    async def until(self, true: Callable[[], Any], within_s: float = 30.0) -> None:
        """Returns when it is so; fails after a while."""
        deadline = time.monotonic() + within_s
        while not true():
            assert time.monotonic() < deadline, "it does not come true"
            await asyncio.sleep(0.02)

    def close(self) -> None:
        self.scheduler.close()
        self.database.close()


async def _stoppable(stack: AsyncExitStack, run: Callable[[asyncio.Event], Any]) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(run(stop))

    async def ended() -> None:
        stop.set()
        await asyncio.wait_for(task, 20)

    stack.push_async_callback(ended)


@pytest.fixture
def stage(database_url: str, nats_url: str, namespace: str) -> Generator[Stage]:
    opened = Stage(Settings.read(database_url, nats_url=nats_url, namespace=namespace))
    yield opened
    opened.close()
