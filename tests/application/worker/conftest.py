"""A worker in memory: the real loop on a simulated log, a queue that is a list, a clock by hand."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from horolog.application.decision import (
    Decision,
    decide_on_fires,
    decide_on_job,
    decide_on_occurrence,
)
from horolog.application.log import Appended, Recorded, Verdict
from horolog.application.ready import ReadyRun, encode, ready_run
from horolog.application.states import DueOccurrence
from horolog.application.worker.handlers import Handlers
from horolog.application.worker.heartbeats import Extended
from horolog.application.worker.held import ReadyMessage, Wanted, Word, as_many_as_there_are
from horolog.application.worker.processes import RunsInProcess
from horolog.application.worker.settings import WorkerSettings
from horolog.application.worker.worker import WorkerLoop, WorkerPorts
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import StoreUnavailable
from horolog.domain.ids import drawn_job_id, occurrence_id
from horolog.domain.job import JobState, decide_registration
from horolog.domain.occurrence import OccurrenceState, decide_claim, ordered
from horolog.domain.occurrence_events import Claimed
from horolog.domain.origin import Origin
from horolog.domain.schedule import Every
from horolog.domain.sealed import envelope
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.states import SimulatedStates
from horolog.infrastructure.simulated.subjects import SimulatedKeyring

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
LEADER = Origin("leader")


class HandClock:
    """A clock that the test moves; waits end with their event, or when it has moved far enough."""

    def __init__(self) -> None:
        self.at = 1000.0
        self._waits: set[asyncio.Event] = set()

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        until = self.at + timeout_s
        while not event.is_set() and self.at < until:
            moved = asyncio.Event()
            self._waits.add(moved)
            waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(moved.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                self._waits.discard(moved)

    def advance(self, seconds: float) -> None:
        self.at += seconds
        for moved in list(self._waits):
            moved.set()


class Message:
    """A delivery that remembers what was said about it."""

    def __init__(self, data: bytes, age_s: float = 0.0) -> None:
        self.data = data
        self.age_s = age_s
        self.traceparent: str | None = None
        self.words: list[tuple[str, float]] = []
        self.again: Callable[[], None] = lambda: None
        """Delivers it once more."""

    def tell(self, word: Word) -> None:
        self.words.append((word.kind, word.delay_s))

    @property
    def said(self) -> list[str]:
        return [kind for kind, _ in self.words]


class Bench:
    """Everything around a worker, in memory: every port of it is this object or a part of it."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        self.clock = HandClock()
        self.memory = SimulatedLog(lambda: START + timedelta(seconds=self.clock.at - 1000.0))
        self.states = SimulatedStates(self.memory)
        self.keyring: Any = SimulatedKeyring(self.memory.tables, "simulated")
        self.away = False
        """Whether the log is away."""
        self.cut = False
        """Whether the next append's answer is lost after its commit."""
        self.appends: list[int] = []
        self.counts: dict[str, int] = {}
        self.extended: list[list[UUID]] = []
        self.pulls: list[int] = []
        self._queues: dict[str, deque[Message]] = {}
        self._news = asyncio.Event()
        self._jobs = 0
        self.loop: WorkerLoop | None = None
        self.processes: RunsInProcess | None = None
        self.patience_s = 10.0
        self.key: bytes | None = None
        self.tell: Callable[[str], None] = lambda _: None
        """Tells the worker which runs are to stop."""

    # The ports.

    async def pull(self, limit: int, wanted: Wanted = as_many_as_there_are) -> list[ReadyMessage]:
        self.pulls.append(limit)
        messages: list[ReadyMessage] = []
        while not messages:
            self._news.clear()
            for name, queue in self._queues.items():
                most = min(wanted(name), limit - len(messages), len(queue))
                messages += [queue.popleft() for _ in range(most)]
            if not messages:
                await self._news.wait()
        return messages

    def wants_more(self) -> None:
        self._news.set()

    async def append(self, decisions: Sequence[Decision]) -> Appended:
        await asyncio.sleep(0)
        self._answer()
        self.appends.append(len(decisions))
        appended = self.memory.append(decisions)
        if self.cut:
            self.cut = False
            raise StoreUnavailable("cut off after the commit")
        return appended

    async def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        self._answer()
        return self.memory.stream(stream, after=after, limit=limit)

    async def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        self._answer()
        return self.states.occurrence(occurrence_id)

    async def genuine(self, occurrences: Sequence[UUID]) -> list[ReadyRun]:
        self._answer()
        return [
            ready_run(row.job, row.occurrence)
            for row in self.states.due(list(occurrences))
            if isinstance(row, DueOccurrence) and row.occurrence.state == "claimed"
        ]

    def extend(self, attempts: Sequence[tuple[UUID, int]], lease_s: float) -> Extended:
        self._answer()
        self.extended.append([occurrence for occurrence, _ in attempts])
        held: set[UUID] = set()
        cancelled: set[UUID] = set()
        for occurrence, number in attempts:
            state = self.states.occurrence(occurrence)
            if (
                state is not None
                and state.attempt == number
                and state.state in ("running", "stopping")
            ):
                held.add(occurrence)
                if state.state == "stopping":
                    cancelled.add(occurrence)
        return Extended(frozenset(held), frozenset(cancelled))

    async def hear(
        self, heard: Callable[[str], None], connected: Callable[[], None], stop: asyncio.Event
    ) -> None:
        self.tell = heard
        connected()
        await stop.wait()

    def announce(self, details: dict[str, Any], for_s: float) -> None:
        self._answer()

    def leave(self) -> None:
        self._answer()

    def last_result(self, job_id: UUID, before: UUID) -> Any:
        self._answer()
        results = [
            event.event.model_dump()["result"]
            for event in self.memory.log(topics=["occurrence.succeeded.1"], limit=10_000)
            if event.stream < before
        ]
        return results[-1] if results else None

    def add(self, counts: Mapping[str, int]) -> None:
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    @contextmanager
    def begin(self) -> Generator["MemoryTransaction"]:
        yield MemoryTransaction(self)

    @asynccontextmanager
    async def begin_async(self) -> AsyncGenerator["AsyncMemoryTransaction"]:
        yield AsyncMemoryTransaction(self)

    def _answer(self) -> None:
        if self.away:
            raise StoreUnavailable("Postgres is away")

    # What a test does.

    @asynccontextmanager
    async def working(self, **settings: Any) -> AsyncGenerator[asyncio.Event]:
        """A worker that runs; setting the event stops it, and so does the end of the block."""
        self.handlers.prepare()
        given = WorkerSettings(**settings)
        ports = WorkerPorts(
            ready=self, log=self, occurrences=self, leases=self, presence=self, transactions=self,
            results=self, counts=self, stops=self, clock=self.clock, processes=self.processes,
            genuine=self, message_key=self.key, keyring=self.keyring,
        )  # fmt: skip
        self.loop = WorkerLoop(self.handlers, ports, given, "worker/test")
        stop = asyncio.Event()
        task = asyncio.create_task(self.loop.run(stop))
        try:
            yield stop
        finally:
            stop.set()
            async with asyncio.timeout(20):
                while not task.done():
                    await asyncio.sleep(0.001)
                    self.clock.advance(1.0)
            await task

    def register(
        self, name: str, payload: dict[str, Any] | None = None, **policies: Any
    ) -> JobState:
        self._jobs += 1
        schedule = Every(1, anchor=START - timedelta(days=1))
        job_id = drawn_job_id(START, self._jobs.to_bytes(16))
        if (subject := policies.get("subject")) is not None:
            keyring = SimulatedKeyring(self.memory.tables, "simulated")
            payload = dict(envelope(keyring.seal(subject, job_id, payload or {})))
        definition = JobDefinition(
            name=name, schedule=schedule.to_json(), payload=payload or {}, **policies
        )
        events = decide_registration(
            definition, partition=0, key=None, now=START - timedelta(days=1), origin=LEADER
        )
        decision, state = decide_on_job(None, job_id, events)
        assert self.memory.append([decision]).verdicts == ["accepted"]
        return state

    def claim(self, job: JobState, count: int = 1) -> list[ReadyRun]:
        """Claims the first fire times of a job that has none claimed yet."""
        assert job.next_fire is not None
        fire, claims = job.next_fire, list[tuple[OccurrenceState, Claimed]]()
        for number in range(count):
            before = ordered(occurrence_id(job.id, fire), job.id, 0, fire, "schedule")
            claim = decide_claim(
                before, job_version=job.version, token=1, window_s=30, origin=LEADER
            )
            fire += timedelta(seconds=1)
            update = {"fires": number + 1, "next_fire": fire}
            claims.append((before, claim.model_copy(update=update)))
        decision, state, claimed = decide_on_fires(job, job.next_fire, claims, [])
        assert self.memory.append([decision]).verdicts == ["accepted"]
        return [ready_run(state, occurrence) for occurrence in claimed]

    def claim_again(self, retrying: OccurrenceState) -> ReadyRun:
        """Claims an occurrence that waits for its retry."""
        job = self.states.job(retrying.job_id)
        assert job is not None
        claim = decide_claim(retrying, job_version=job.version, token=1, window_s=30, origin=LEADER)
        decision, claimed = decide_on_occurrence(retrying, [claim])
        assert self.memory.append([decision]).verdicts == ["accepted"]
        return ready_run(job, claimed)

    def ready(self, name: str, payload: dict[str, Any] | None = None, **policies: Any) -> ReadyRun:
        """A claimed run of a new job."""
        return self.claim(self.register(name, payload, **policies))[0]

    def publish(self, *runs: ReadyRun, age_s: float = 0.0) -> Message:
        return self.publish_raw(encode(runs), age_s, queue=runs[0].queue if runs else "default")

    def publish_raw(self, data: bytes, age_s: float = 0.0, *, queue: str = "default") -> Message:
        message = Message(data, age_s)
        message.again = lambda: self._put(queue, message)
        self._put(queue, message)
        return message

    def _put(self, queue: str, message: Message) -> None:
        self._queues.setdefault(queue, deque()).append(message)
        self._news.set()

    def events(self, run: ReadyRun) -> list[Any]:
        return [recorded.event for recorded in self.memory.stream(run.occurrence)]

    def topics(self, run: ReadyRun) -> list[str]:
        return [event.topic.split(".")[1] for event in self.events(run)]

    def last(self, run: ReadyRun) -> Any:
        return self.events(run)[-1]

    async def until(self, condition: Callable[[], object]) -> None:
        """Lets the loop run until the condition holds."""
        async with asyncio.timeout(self.patience_s):
            while not condition():  # noqa: ASYNC110 - a condition of the test, not ours to signal
                await asyncio.sleep(0.001)

    async def until_ended(self, *runs: ReadyRun) -> None:
        """Until the last event of each run is no attempt's beginning."""
        begun = {"occurrence.claimed.1", "occurrence.attempted.1"}
        await self.until(lambda: all(self.last(run).topic not in begun for run in runs))

    async def settled(self) -> None:
        """Until nothing happens any more, as far as a few rounds of the loop can tell."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def work_off(self, *runs: ReadyRun, **settings: Any) -> list[Message]:
        """Publishes each run alone, works until each has ended, and stops."""
        messages = [self.publish(run) for run in runs]
        async with self.working(**settings):
            await self.until_ended(*runs)
        return messages


class MemoryTransaction:
    """Effects are kept in a list until the success is appended."""

    def __init__(self, bench: Bench) -> None:
        self.connection: list[str] = []
        self._bench = bench

    def succeed(self, decision: Decision) -> Verdict:
        return self._bench.memory.append([decision]).verdicts[0]


class AsyncMemoryTransaction(MemoryTransaction):
    async def succeed(self, decision: Decision) -> Verdict:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._bench.memory.append([decision]).verdicts[0]


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    """A fresh bench."""
    yield Bench()
    with suppress(RuntimeError):
        await asyncio.sleep(0)
