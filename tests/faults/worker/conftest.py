"""A leader of the tests' own: it claims and publishes at their word, so that faults are timed."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from horolog.application.decision import decide_on_fires, decide_on_job, decide_on_occurrence
from horolog.application.ready import MAX_RUNS, ReadyRun, encode, ready_run
from horolog.application.states import DueOccurrence
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import StoreUnavailable
from horolog.domain.ids import drawn_job_id, occurrence_id
from horolog.domain.job import JobState, advance, decide_registration
from horolog.domain.occurrence import OccurrenceState, decide_claim, decide_loss, ordered
from horolog.domain.occurrence_events import Claimed
from horolog.domain.origin import Origin
from horolog.domain.schedule import Every
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.nats.stream import ReadyStream, StreamSettings
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.interface.processes.worker import run_worker
from horolog.interface.worker import Worker

LEADER = Origin("test-leader")
WINDOW_S = 30.0


class Leader:
    """Registers, claims, publishes, and looks after what came due: a leader without election."""

    def __init__(self, database_url: str, nats_url: str, namespace: str) -> None:
        self.database_url, self.nats_url, self.namespace = database_url, nats_url, namespace
        self.database = Database(database_url, namespace)
        migrate(self.database)
        self.log = PostgresLog(self.database, patience_s=20)
        self.states = PostgresStates(self.database)
        self.stream_settings = StreamSettings(ack_wait_s=1.0)
        self.execute("CREATE TABLE :schema.effects (key text, at timestamptz DEFAULT now())")

    # Asking.

    def execute(self, statement: str, params: Any = None) -> list[Row]:
        return self.database.query(self.database.sql(statement), params)

    def effects(self) -> dict[str, int]:
        """How often each key took effect."""
        rows = self.execute("SELECT key, count(*) FROM :schema.effects GROUP BY key")
        return dict(rows)

    def topics(self, occurrence: UUID) -> list[str]:
        """What happened to an occurrence, as the middle words of its topics."""
        return [event.event.topic.split(".")[1] for event in self.log.stream(occurrence)]

    def events(self, occurrence: UUID, topic: str) -> list[Any]:
        found = [recorded.event for recorded in self.log.stream(occurrence)]
        return [event for event in found if event.topic == f"occurrence.{topic}.1"]

    def states_of(self, occurrences: Sequence[UUID]) -> dict[str, int]:
        """How many of these occurrences are in which state."""
        counts: dict[str, int] = {}
        rows = self.execute(
            "SELECT state FROM :schema.executions WHERE id = ANY (%(ids)s) UNION ALL"
            " SELECT state FROM :schema.next_runs WHERE id = ANY (%(ids)s)",
            {"ids": list(occurrences)},
        )
        for (state,) in rows:
            counts[state] = counts.get(state, 0) + 1
        return counts

    def counters(self) -> dict[str, int]:
        return dict(self.execute("SELECT * FROM :schema.counters"))

    # Doing.

    def register(
        self, name: str, payload: dict[str, Any] | None = None, **policies: Any
    ) -> JobState:
        """A job whose next fire lies an hour back, so that a test can claim its fires."""
        anchor = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=12)
        schedule = Every(1, anchor=anchor)
        job_id = drawn_job_id(
            datetime.now(UTC), id(object()).to_bytes(8) + time.time_ns().to_bytes(8)
        )
        definition = JobDefinition(
            name=name,
            schedule=schedule.to_json(),
            payload=payload or {},
            catch_up="all",
            **policies,
        )
        events = decide_registration(definition, partition=0, key=None, now=anchor, origin=LEADER)
        decision, state = decide_on_job(None, job_id, events)
        assert self.log.append([decision]).verdicts == ["accepted"]
        return state

    def claim(self, job: JobState, count: int = 1) -> tuple[JobState, list[ReadyRun]]:
        """Claims the job's next fire times; nothing is published yet."""
        assert job.next_fire is not None
        claims: list[tuple[OccurrenceState, Claimed]] = []
        fire, fires = job.next_fire, job.fires
        for _ in range(count):
            before = ordered(occurrence_id(job.id, fire), job.id, job.partition, fire, "schedule")
            claim = decide_claim(
                before, job_version=job.version, token=1, window_s=WINDOW_S, origin=LEADER
            )
            fire, fires = fire + timedelta(seconds=1), fires + 1
            claims.append((before, claim.model_copy(update={"fires": fires, "next_fire": fire})))
        decision, state, claimed = decide_on_fires(job, job.next_fire, claims, [])
        assert self.log.append([decision]).verdicts == ["accepted"]
        assert state == advance(job, fire, fires)
        return state, [ready_run(state, occurrence) for occurrence in claimed]

    async def publish(self, runs: Sequence[ReadyRun], *, per_message: int = MAX_RUNS) -> None:
        messages: dict[str, list[bytes]] = {}
        for at in range(0, len(runs), per_message):
            page = runs[at : at + per_message]
            messages.setdefault(page[0].queue, []).append(encode(page))
        for queue, contents in messages.items():
            await self.publish_raw(queue, contents)

    async def publish_raw(self, queue: str, contents: Sequence[bytes]) -> None:
        client, jetstream = await connect(self.nats_url)
        try:
            stream = ReadyStream(jetstream, self.namespace, self.stream_settings)
            await stream.ensure_queue(queue)
            for content in contents:
                await jetstream.publish(stream.subject(queue), content)
        finally:
            await client.close()

    @staticmethod
    def encoded(runs: Sequence[ReadyRun]) -> bytes:
        return encode(runs)

    def lose_running(self) -> None:
        """Gives up the attempts whose leases have run out, and claims nothing."""
        rows = self.execute(
            "SELECT id FROM :schema.next_runs WHERE state = 'running' AND due_at <= now()"
        )
        for row in self.states.due([row[0] for row in rows]):
            if isinstance(row, DueOccurrence):
                self._attend(row)

    async def fire(self, job: JobState, count: int = 1, **kwargs: Any) -> list[UUID]:
        """Claims and publishes; the ids of the occurrences."""
        _, runs = self.claim(job, count)
        await self.publish(runs, **kwargs)
        return [run.occurrence for run in runs]

    async def look(self) -> None:
        """One look at what is due: lost attempts are told so, retries and lost messages go out."""
        rows = self.execute(
            "SELECT id FROM :schema.next_runs WHERE kind <> 'job' AND due_at <= now() LIMIT 500"
        )
        due = [
            row
            for row in self.states.due([row[0] for row in rows])
            if isinstance(row, DueOccurrence)
        ]
        runs: list[ReadyRun] = []
        for row in due:
            runs += self._attend(row)
        if runs:
            await self.publish(runs)

    def _attend(self, row: DueOccurrence) -> list[ReadyRun]:
        state, definition = row.occurrence, row.job.definition
        if state.state == "claimed":
            return [ready_run(row.job, state)]
        if state.state == "running":
            events = decide_loss(
                state, retry=definition.retry, on_unknown="retry", now=datetime.now(UTC),
                owner=definition.owner, origin=LEADER,
            )  # fmt: skip
            self.log.append([decide_on_occurrence(state, events, name=definition.name)[0]])
            return []
        claim = decide_claim(
            state, job_version=row.job.version, token=1, window_s=WINDOW_S, origin=LEADER
        )
        decision, claimed = decide_on_occurrence(state, [claim])
        if self.log.append([decision]).verdicts != ["accepted"]:
            return []
        run = ready_run(row.job, claimed)
        return [run.model_copy(update={"lost": row.lost})]

    async def until(
        self, condition: Callable[[], bool], what: str, *, within_s: float = 30.0, look: bool = True
    ) -> None:
        """Leads until the condition holds."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                if condition():
                    return
                if look:
                    await self.look()
            except StoreUnavailable:  # a test has Postgres restarted
                pass
            assert time.monotonic() < deadline, f"{what}: not within {within_s} s"
            await asyncio.sleep(0.05)

    async def until_all(self, occurrences: Sequence[UUID], state: str, **kwargs: Any) -> None:
        expected = {state: len(occurrences)}
        try:
            await self.until(
                lambda: self.states_of(occurrences) == expected, f"all {state}", **kwargs
            )
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.states_of(occurrences)}") from None


@pytest.fixture
def leader(database_url: str, nats_url: str, namespace: str) -> Generator[Leader]:
    leading = Leader(database_url, nats_url, namespace)
    yield leading
    leading.database.close()


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start_worker(leader: Leader, tmp_path: Path) -> Generator[Start]:
    """Starts worker processes with the settings given; ends those that are left."""
    with starting(leader, tmp_path) as start:
        yield start


@pytest.fixture
def start_worker_of(tmp_path: Path) -> Callable[[Leader], AbstractContextManager[Start]]:
    """The same, for a leader of the test's own."""
    return lambda leader: starting(leader, tmp_path)


@contextmanager
def starting(leader: Leader, tmp_path: Path) -> Generator[Start]:
    program = Path(__file__).with_name("worker_program.py")
    processes: list[subprocess.Popen[bytes]] = []
    environment = os.environ | {
        "HOROLOG_DATABASE_URL": leader.database_url,
        "HOROLOG_NATS_URL": leader.nats_url,
        "HOROLOG_NAMESPACE": leader.namespace,
    }

    def start(**settings: Any) -> subprocess.Popen[bytes]:
        words = tmp_path / f"worker-{len(processes)}.log"
        with words.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, str(program), json.dumps(settings)],
                env=environment, stdout=sink, stderr=sink,
            )  # fmt: skip
        processes.append(process)
        return process

    try:
        yield start
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def leader_of(namespace: str) -> Callable[[EmbeddedServers], Leader]:
    """A leader on servers of the test's own."""

    def lead(servers: EmbeddedServers) -> Leader:
        found = servers.find()
        assert found is not None
        return Leader(found.database_url, found.nats_url, namespace)

    return lead


@pytest.fixture
def working(leader: Leader) -> Callable[..., AbstractAsyncContextManager[asyncio.Event]]:
    """Runs a worker in this process, for as long as the block lasts."""

    @asynccontextmanager
    async def work(worker: Worker, **settings: Any) -> AsyncGenerator[asyncio.Event]:
        stop = asyncio.Event()
        running = asyncio.create_task(
            run_worker(
                worker,
                database_url=leader.database_url,
                nats_url=leader.nats_url,
                namespace=leader.namespace,
                stop=stop,
                settings=worker.settings.model_copy(update=settings),
            )
        )
        try:
            yield stop
        finally:
            stop.set()
            await asyncio.wait_for(running, 30)

    return work
