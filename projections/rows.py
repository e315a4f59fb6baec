"""The rows of the inline read models, as functions of the domain's states.

``next_runs`` has one row for each thing that needs attention at a time: an active job's next fire,
and each unfinished occurrence's next try or next look. One mechanism serves first firings, retries,
lost messages and dead workers. An occurrence that has ended leaves that index for ``executions``.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from horolog.domain.due_fires import due_at
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.occurrence_events import DeadLettered
from horolog.domain.record import record


@record
class NextRun:
    """A row of the next-run index.

    ``due_at`` is absolute, or the row is due ``look_after_s`` seconds after the append by the
    database's clock. ``look`` marks rows that only want a look (a claim's window, an attempt's
    lease); the others are fires, which have to be punctual. For a job's row ``id`` is the job's.
    ``fires`` of a job's row is how many fire times its schedule has used up; of an occurrence's row
    the job's version whose definition it runs, 0 where that is the present one.
    """

    id: UUID
    job_id: UUID
    partition: int
    due_at: datetime | None
    look_after_s: float | None
    look: bool
    state: str
    kind: str
    version: int
    fire_time: datetime
    attempt: int
    failures: int
    fires: int


@record
class Execution:
    """A row of the execution log: one finished occurrence."""

    id: UUID
    job_id: UUID
    partition: int
    fire_time: datetime
    kind: str
    state: str
    version: int
    attempt: int
    failures: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row of the dead letters: what nobody will retry by themselves, and whose it is."""

    id: UUID
    job_id: UUID
    name: str
    owner: str | None
    cause: str
    kind: str | None
    error: str
    attempt: int
    fire_time: datetime


@record
class JobRow:
    """A row of the current definitions.

    ``held_fire`` and ``fires`` are where the schedule stands while the index has no row of the job.
    """

    id: UUID
    key: str | None
    version: int
    status: str
    partition: int
    name: str
    queue: str
    owner: str | None
    labels: dict[str, str]
    definition: str
    held_fire: datetime | None
    fires: int


@record
class JobMove:
    """The part of a job's row that changes when its schedule moves on: its definition stands."""

    id: UUID
    version: int
    status: str
    fires: int


@dataclass(frozen=True, slots=True)
class Leader:
    """A row of the partitions: who leads, under which token, for how many seconds more."""

    partition: int
    version: int
    instance: str | None
    token: int | None
    lease_s: float


def job_next_run(state: JobState) -> NextRun | None:
    """The row of a job's next fire; ``None`` where it has none, and its row has to go."""
    if state.status != "active" or state.next_fire is None:
        return None
    return NextRun(
        id=state.id,
        job_id=state.id,
        partition=state.partition,
        due_at=fire_due_at(state, state.next_fire),
        look_after_s=None,
        look=False,
        state="active",
        kind="job",
        version=state.version,
        fire_time=state.next_fire,
        attempt=0,
        failures=0,
        fires=state.fires,
    )


def fire_due_at(state: JobState, fire: datetime) -> datetime:
    """When the fire is due; a schedule without jitter is not read for that."""
    definition = state.definition
    if not definition.schedule.get("jitter"):
        return fire
    return due_at(definition.parsed_schedule(), state.id, fire)


def occurrence_next_run(state: OccurrenceState) -> NextRun:
    """The row of an unfinished occurrence."""
    assert not state.finished
    return NextRun(
        id=state.id,
        job_id=state.job_id,
        partition=state.partition,
        due_at=state.due,
        look_after_s=state.look_after_s,
        look=state.state in ("claimed", "running", "stopping"),
        state=state.state,
        kind=state.kind,
        version=state.version,
        fire_time=state.fire_time,
        attempt=state.attempt,
        failures=state.failures,
        fires=state.definition_version or 0,
    )


def execution(state: OccurrenceState) -> Execution:
    """The row of a finished occurrence."""
    assert state.finished
    return Execution(
        id=state.id,
        job_id=state.job_id,
        partition=state.partition,
        fire_time=state.fire_time,
        kind=state.kind,
        state=state.state,
        version=state.version,
        attempt=state.attempt,
        failures=state.failures,
    )


def dead_letter(state: OccurrenceState, event: DeadLettered, name: str) -> DeadLetter:
    """The row of an occurrence that ``event`` gave up; ``name`` is the handler's."""
    return DeadLetter(
        id=state.id,
        job_id=state.job_id,
        name=name,
        owner=event.owner,
        cause=event.cause,
        kind=event.kind,
        error=event.error,
        attempt=state.attempt,
        fire_time=state.fire_time,
    )


def job_row(state: JobState, definition_json: str | None = None) -> JobRow:
    """The row of a job's current definition; its JSON may be at hand."""
    definition = state.definition
    return JobRow(
        id=state.id,
        key=state.key,
        version=state.version,
        status=state.status,
        partition=state.partition,
        name=definition.name,
        queue=definition.queue,
        owner=definition.owner,
        labels=definition.labels,
        definition=definition_json or definition.to_json(),
        held_fire=state.next_fire if state.status == "paused" else None,
        fires=state.fires,
    )


def job_move(state: JobState) -> JobMove:
    """What the row of a job becomes whose definition stands."""
    return JobMove(state.id, state.version, state.status, state.fires)
