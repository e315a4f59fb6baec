"""A stage for scanners: real servers, jobs that come due, and what the log and the queue say."""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from horolog.application.decision import Decision, decide_on_job, decide_on_occurrence
from horolog.application.ready import ReadyRun, decode
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import partition_of
from horolog.domain.job import decide_registration
from horolog.domain.occurrence_events import Attempted
from horolog.domain.origin import Origin
from horolog.domain.schedule import Once
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.scanner import run_scanner

PARTITIONS = 8
_NOBODY_TAKES: dict[str, Any] = {"ahead_first": 1_000_000}
"""There are no workers, whose pace would say how much the queue may be given."""
ME = Origin(actor="test")

_CHILD = """
import asyncio, json, os, sys
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.interface.processes.scanner import run_scanner

database_url, nats_url, namespace, settings, fault, count = sys.argv[1:]
seen = 0

def witness(name, number):
    global seen
    if name == fault:
        seen += 1
        if seen == int(count):
            os._exit(9)

async def main():
    await run_scanner(
        database_url, nats_url, namespace, ScannerSettings(**json.loads(settings)),
        asyncio.Event(), signals=Signals(witness),
    )

asyncio.run(main())
"""


class Stage:
    """One namespace, with jobs of one run each."""

    def __init__(self, database_url: str, nats_url: str, namespace: str) -> None:
        self.database_url, self.nats_url, self.namespace = database_url, nats_url, namespace
        self.database = Database(database_url, namespace, size=2)
        migrate(self.database, partitions=PARTITIONS)
        self.log = PostgresLog(self.database)

    # Doing.

    def register(
        self, count: int, *, in_s: float = 0.0, ago_s: float = 0.0, **values: Any
    ) -> set[UUID]:
        """Jobs that fire once, all at the same time; registered a while ago, if so wanted."""
        now = datetime.now(UTC) - timedelta(seconds=ago_s)
        schedule = Once(now + timedelta(seconds=in_s)).to_json()
        ids: set[UUID] = set()
        for start in range(0, count, 2_000):
            decisions: list[Decision] = []
            for _ in range(min(2_000, count - start)):
                job_id = uuid4()
                definition = JobDefinition(name="a.b", schedule=schedule, **values)
                events = decide_registration(
                    definition,
                    partition=partition_of(str(job_id), PARTITIONS),
                    key=None,
                    now=now,
                    origin=ME,
                )
                decisions.append(decide_on_job(None, job_id, events)[0])
                ids.add(job_id)
            assert set(self.log.append(decisions).verdicts) == {"accepted"}
        return ids

    def attempt(self, runs: Sequence[ReadyRun], lease_s: float) -> None:
        """What a worker does first with a run."""
        decisions = [
            decide_on_occurrence(
                run.claimed(),
                [Attempted(attempt=run.attempt, lease=lease_s, **ME.fields())],
            )[0]
            for run in runs
        ]
        assert set(self.log.append(decisions).verdicts) == {"accepted"}

    @asynccontextmanager
    async def scanner(self, **settings: Any) -> AsyncGenerator[Signals]:
        """A scanner in this process, stopped gracefully at the end."""
        signals, stop = Signals(), asyncio.Event()
        task = asyncio.create_task(
            run_scanner(
                self.database_url,
                self.nats_url,
                self.namespace,
                ScannerSettings(**_NOBODY_TAKES | settings),
                stop,
                signals=signals,
            )
        )
        try:
            yield signals
        finally:
            stop.set()
            await asyncio.wait_for(task, 20)

    @contextmanager
    def child(
        self, fault: str = "", at: int = 1, **settings: Any
    ) -> Generator[subprocess.Popen[bytes]]:
        """A scanner in a process of its own, which ends without a word when it has come to a point
        for the ``at``-th time; killed at the end."""
        words = json.dumps(_NOBODY_TAKES | settings)
        arguments = [self.database_url, self.nats_url, self.namespace, words]
        command = [sys.executable, "-c", _CHILD, *arguments, fault, str(at)]
        process = subprocess.Popen(command)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    # Asking.

    def ask(self, statement: str, params: Any = None) -> list[Any]:
        return self.database.query(self.database.sql(statement), params)

    def claims(self) -> list[tuple[UUID, int, int, int]]:
        """Every claim in the log, in its order: occurrence, attempt, partition, token."""
        return self.ask(
            "SELECT stream, (state ->> 'attempt')::int, (state ->> 'partition')::int,"
            " (state ->> 'token')::int"
            " FROM :schema.log WHERE topic = 'occurrence.claimed.1' ORDER BY position"
        )

    def claimed_jobs(self) -> set[UUID]:
        rows = self.ask(
            "SELECT (state ->> 'job_id')::uuid FROM :schema.log"
            " WHERE topic = 'occurrence.claimed.1'"
        )
        return {row[0] for row in rows}

    def leaders(self) -> set[str]:
        return {
            row[0]
            for row in self.ask("SELECT instance FROM :schema.partitions WHERE instance NOTNULL")
        }

    def counter(self, name: str) -> int:
        rows = self.ask("SELECT value FROM :schema.counters WHERE name = %s", (name,))
        return rows[0][0] if rows else 0

    async def queued(self) -> list[ReadyRun]:
        """Every run in the stream, in its order; the same run twice is two messages."""
        queue = NatsReadyQueue(self.nats_url, self.namespace)
        try:
            state = await queue.look()
            count = state.last_seq - state.first_seq + 1
            held = await queue.contents(state.life, state.first_seq, count) if count > 0 else []
            return [run for message in held for run in decode(message.data)]
        finally:
            await queue.close()

    async def until(self, true: Callable[[], Any], within_s: float = 20.0) -> None:
        """Returns when it is so; fails after a while."""
        deadline = time.monotonic() + within_s
        while not true():
            assert time.monotonic() < deadline, "it does not come true"
            await asyncio.sleep(0.02)

    async def until_claimed(self, count: int) -> None:
        """Returns when so many jobs were claimed."""
        await self.until(lambda: len(self.claimed_jobs()) == count)

    async def until_queued(self, count: int, within_s: float = 20.0) -> None:
        """Returns when the queue holds so many different runs."""
        deadline = time.monotonic() + within_s
        while len({run.occurrence for run in await self.queued()}) < count:
            assert time.monotonic() < deadline, "they do not reach the queue"
            await asyncio.sleep(0.05)

    async def check_claims(self, jobs: set[UUID]) -> None:
        """Each job was claimed once, tokens only grow, and every claim is in the queue."""
        claims = self.claims()
        attempts = Counter((occurrence, attempt) for occurrence, attempt, *_ in claims)
        assert set(attempts.values()) <= {1}
        assert self.claimed_jobs() == jobs
        assert len(claims) == len(jobs)
        newest: dict[int, int] = {}
        for _, _, partition, token in claims:
            assert token >= newest.get(partition, 0)
            newest[partition] = token
        queued = Counter((run.occurrence, run.attempt) for run in await self.queued())
        assert set(queued) == set(attempts)


@pytest.fixture
def make_stage(namespace: str) -> Iterator[Callable[[str, str], Stage]]:
    """A stage on servers of one's choice."""
    stages: list[Stage] = []

    def make(database_url: str, nats_url: str) -> Stage:
        stages.append(Stage(database_url, nats_url, namespace))
        return stages[-1]

    yield make
    for stage in stages:
        stage.database.close()


@pytest.fixture
def stage(make_stage: Callable[[str, str], Stage], database_url: str, nats_url: str) -> Stage:
    """A stage on the shared servers."""
    return make_stage(database_url, nats_url)
