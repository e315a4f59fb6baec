"""The implementations that every contract runs against: Postgres, and the log in memory."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

import pytest

from horolog.application.decision import (
    Decision,
    decide_on_fires,
    decide_on_job,
    decide_on_occurrence,
    decide_on_partition,
)
from horolog.application.log import AppendsToLog, Fences, ReadsLog, Verdict
from horolog.application.scanner.assembly import Index, Leases
from horolog.application.scanner.news import HearsNews
from horolog.application.states import ReadsDue, ReadsStates
from horolog.application.worker.heartbeats import ExtendsLeases
from horolog.domain.definition import JobDefinition, Overlap
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.domain.job import JobState
from horolog.domain.job_events import JobEvent, Registered
from horolog.domain.occurrence import OccurrenceState, decide_claim, ordered
from horolog.domain.occurrence_events import (
    Attempted,
    Claimed,
    DeadLettered,
    Failed,
    OccurrenceEvent,
)
from horolog.domain.origin import Origin
from horolog.domain.partition import Elected, PartitionState
from horolog.domain.schedule import Every
from horolog.infrastructure.postgres.attempt_leases import PostgresLeases
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.due_index import PostgresDueIndex
from horolog.infrastructure.postgres.due_news import PostgresDueNews
from horolog.infrastructure.postgres.leases import PostgresLeases as PostgresScannerLeases
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.infrastructure.postgres.threaded import DedicatedThread
from horolog.infrastructure.simulated.attempt_leases import SimulatedAttemptLeases
from horolog.infrastructure.simulated.leases import SimulatedLeases
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.news import SimulatedNews
from horolog.infrastructure.simulated.scanner_index import SimulatedScannerIndex
from horolog.infrastructure.simulated.states import SimulatedStates


class Log(AppendsToLog, ReadsLog, Protocol):
    """Both sides of the log."""


class States(ReadsStates, ReadsDue, Protocol):
    """All that is read from the states."""


@dataclass(frozen=True)
class Leading:
    """What the partitions' table says of one partition."""

    version: int
    instance: str | None
    token: int | None


@dataclass
class Store:
    """One implementation of the ports, and ways to look behind them.

    ``index`` and ``leases`` are the scanner's, ``attempts`` the worker's leases, ``news`` makes who
    listens to one of the channels. ``now`` is the log's own clock and ``later`` lets a little of
    its time pass. ``plant`` writes an event into the log past every check, as another release
    would.
    """

    log: Log
    states: States
    namespace: str
    now: Callable[[], datetime]
    later: Callable[[], None]
    plant: Callable[[UUID, int, str, bytes], None]
    dead_letters: Callable[[], set[UUID]]
    executions: Callable[[], dict[UUID, str]]
    leading: Callable[[int], Leading]
    counter: Callable[[str], int]
    index: Index
    leases: Leases
    attempts: ExtendsLeases
    news: Callable[[str], HearsNews]

    def partition_stream(self, number: int) -> UUID:
        return partition_stream(self.namespace, number)


@dataclass
class MovedClock:
    """A clock that stands until it is moved."""

    time: datetime = field(default_factory=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC))

    def now(self) -> datetime:
        return self.time

    def move(self) -> None:
        self.time += timedelta(milliseconds=1)


@pytest.fixture(params=["postgres", "simulated"])
def store(request: pytest.FixtureRequest) -> Generator[Store]:
    if request.param == "simulated":
        yield _simulated()
        return
    database = Database(
        request.getfixturevalue("database_url"), request.getfixturevalue("namespace")
    )
    migrate(database)
    thread = DedicatedThread("contracts")
    yield _postgres(database, thread)
    thread.close()
    database.close()


def _simulated() -> Store:
    clock = MovedClock()
    log = SimulatedLog(clock.now, namespace="simulated", keeps_lanes=True)
    tables = log.tables

    def plant(stream: UUID, version: int, topic: str, state: bytes) -> None:
        tables.record(clock.now(), stream, version, topic, state)

    def leading(number: int) -> Leading:
        row = tables.partitions[number]
        return Leading(row.version, row.instance, row.token)

    states = SimulatedStates(log)
    return Store(
        log=log,
        states=states,
        namespace="simulated",
        now=clock.now,
        later=clock.move,
        plant=plant,
        dead_letters=lambda: set(tables.dead_letters),
        executions=lambda: {row.id: row.state for row in tables.executions.values()},
        leading=leading,
        counter=lambda name: tables.counters.get(name, 0),
        index=SimulatedScannerIndex(log, states),
        leases=SimulatedLeases(log),
        attempts=SimulatedAttemptLeases(log),
        news=lambda channel: SimulatedNews(log, channel),
    )


def _postgres(database: Database, thread: DedicatedThread) -> Store:
    def query(text: str, params: object = None) -> list[tuple[object, ...]]:
        return database.query(database.sql(text), params)

    def now() -> datetime:
        (moment,) = query("SELECT clock_timestamp()")[0]
        assert isinstance(moment, datetime)
        return moment

    def plant(stream: UUID, version: int, topic: str, state: bytes) -> None:
        query(
            "INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)"
            " VALUES (nextval(:positions), clock_timestamp(), %s, %s, %s, %s)",
            (stream, version, topic, state),
        )

    def executions() -> dict[UUID, str]:
        rows = query("SELECT id, state FROM :schema.executions")
        return {UUID(str(identity)): str(state) for identity, state in rows}

    def leading(number: int) -> Leading:
        (row,) = database.query(
            database.sql(
                "SELECT version, instance, token FROM :schema.partitions WHERE partition = %s"
            ),
            (number,),
        )
        return Leading(*row)

    def counter(name: str) -> int:
        rows = query("SELECT value::int FROM :schema.counters WHERE name = %s", (name,))
        return int(str(rows[0][0])) if rows else 0

    states = PostgresStates(database)
    return Store(
        log=PostgresLog(database),
        states=states,
        namespace=database.namespace,
        now=now,
        later=lambda: None,
        plant=plant,
        dead_letters=lambda: {
            UUID(str(r[0])) for r in query("SELECT id FROM :schema.dead_letters")
        },
        executions=executions,
        leading=leading,
        counter=counter,
        index=PostgresDueIndex(database, states, thread),
        leases=PostgresScannerLeases(database, thread, role="scanner"),
        attempts=PostgresLeases(database),
        news=lambda channel: PostgresDueNews(database, channel),
    )


FIRST_FIRE = datetime(2027, 1, 1, tzinfo=UTC)


@dataclass
class Story:
    """What tells a store of jobs and their occurrences, one accepted step at a time."""

    store: Store
    by: str = "tester"
    partition: int = 3
    fences: Fences | None = None
    _jobs: int = 0

    def registration(self, *, key: str | None = None, overlap: Overlap = "allow") -> Decision:
        """The birth of a job that fires each minute from ``FIRST_FIRE`` on."""
        self._jobs += 1
        definition = JobDefinition(
            name="report", schedule=Every(60, anchor=FIRST_FIRE).to_json(), overlap=overlap
        )
        event = Registered(
            definition=definition,
            partition=self.partition,
            key=key,
            next_fire=FIRST_FIRE,
            actor=self.by,
        )
        decision, _ = decide_on_job(None, UUID(int=self._jobs), [event])
        return decision

    def registered(self, *, key: str | None = None, overlap: Overlap = "allow") -> JobState:
        decision = self.registration(key=key, overlap=overlap)
        assert self.append(decision) == ["accepted"]
        return self.job(decision.guard.id)

    def job(self, job_id: UUID) -> JobState:
        state = self.store.states.job(job_id)
        assert state is not None
        return state

    def changed(self, job: JobState, event: JobEvent) -> Decision:
        return decide_on_job(job, job.id, [event])[0]

    def claiming(self, job: JobState, token: int = 1) -> tuple[Decision, OccurrenceState]:
        """The claim of a job's next fire time, which moves the job on by a minute."""
        fire = job.next_fire
        assert fire is not None
        before = ordered(occurrence_id(job.id, fire), job.id, job.partition, fire, "schedule")
        event = Claimed(
            job_id=job.id,
            job_version=job.version,
            fire_time=fire,
            attempt=1,
            partition=job.partition,
            token=token,
            window=30.0,
            fires=job.fires + 1,
            next_fire=fire + timedelta(minutes=1),
            actor=self.by,
        )
        decision, _, claimed = decide_on_fires(job, fire, [(before, event)], [])
        return decision, claimed[0]

    def claimed(self, job: JobState) -> OccurrenceState:
        decision, state = self.claiming(job)
        assert self.append(decision) == ["accepted"]
        return state

    def claiming_again(self, waiting: OccurrenceState, job: JobState) -> Decision:
        """The claim of a run that is there already: of another attempt."""
        origin = Origin(actor=self.by)
        claim = decide_claim(
            waiting, job_version=job.version, token=1, window_s=30.0, origin=origin
        )
        return decide_on_occurrence(waiting, [claim])[0]

    def went_on(self, before: OccurrenceState, *events: OccurrenceEvent) -> OccurrenceState:
        decision, after = decide_on_occurrence(before, events, name="report")
        assert self.append(decision) == ["accepted"]
        return after

    def dead(self, job: JobState) -> OccurrenceState:
        """An occurrence that was claimed, tried once, and given up."""
        return self.went_on(
            self.claimed(job),
            Attempted(attempt=1, lease=30.0),
            Failed(attempt=1, kind="permanent", error="no such card"),
            DeadLettered(cause="hopeless", owner="billing", error="no such card"),
        )

    def election(self, instance: str, *, version: int, lease_s: float = 30.0) -> Decision:
        stream = self.store.partition_stream(self.partition)
        before = PartitionState(stream, self.partition, version)
        event = Elected(partition=self.partition, instance=instance, lease=lease_s)
        return decide_on_partition(before, [event], lease_s)[0]

    def append(self, *decisions: Decision) -> list[Verdict]:
        return self.store.log.append(decisions, self.fences).verdicts


@pytest.fixture
def story(store: Store) -> Story:
    return Story(store)
