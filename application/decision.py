"""A decision on its way to the log: the events, what they rest on, and the rows that follow.

Decide outside, validate inside: a decision was made from what was read without locks. It names what
it rests on (its guard), and the log accepts it only while that still holds. It is accepted or
refused whole and alone; its neighbours in the batch go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from horolog.domain.event import Event
from horolog.domain.job import JobState, advance
from horolog.domain.job import evolve as evolve_job
from horolog.domain.job_events import FiresSkipped, JobEvent, Registered
from horolog.domain.lanes import Lane
from horolog.domain.occurrence import OccurrenceState, Phase
from horolog.domain.occurrence import evolve as evolve_occurrence
from horolog.domain.occurrence_events import Claimed, DeadLettered, OccurrenceEvent
from horolog.domain.partition import PartitionEvent, PartitionState
from horolog.domain.partition import evolve as evolve_partition
from horolog.domain.record import record
from horolog.projections.rows import (
    DeadLetter,
    Execution,
    JobMove,
    JobRow,
    Leader,
    NextRun,
    dead_letter,
    execution,
    job_move,
    job_next_run,
    job_row,
    occurrence_next_run,
)

GuardKind = Literal["nothing", "next_run", "job", "partition"]


@record
class NewEvent:
    """An event and its place: the ``version``-th (from 1) of ``stream``.

    ``written`` is its JSON, where the caller has it: what ``event.to_json()`` would say.
    """

    stream: UUID
    version: int
    event: Event
    written: bytes | None = None

    def state(self) -> bytes:
        """The event as the log keeps it."""
        return self.written or self.event.to_json()


@record
class Guard:
    """What a decision rests on, checked under the log lock.

    ``next_run``: the index row ``id`` is at ``version``; a job's is also due at ``due``, an
    occurrence's also in ``state`` with ``attempt`` as its last one. (An honest decision has both
    right where it has the version right; one that a forged message led to has not.)
    ``job``: the job is at ``version``; 0 means that it must not exist; where ``due`` is given, that
    is still its fire time in the index (a claim moves it on without a new version).
    ``partition``: the stream is at ``version`` and no other instance holds a running lease.
    Whatever the guard, the place of each event must be free; ``nothing`` asks for no more.
    """

    kind: GuardKind
    id: UUID
    version: int
    due: datetime | None = None
    state: Phase | None = None
    attempt: int | None = None


@dataclass(slots=True)
class Decision:
    """One unit of acceptance. ``partition`` is what the fences speak about.

    What an ordinary run has none of is no list of its own: a run makes three decisions.

    ``subjects`` are those of jobs that can still fire: where the key of one is destroyed, the whole
    batch is refused. ``forgotten`` are subjects whose keys are destroyed with it.

    ``lanes`` are those in which each of its claims needs a slot: where one is full, the decision is
    refused and the row of its guard waits in that lane.
    """

    guard: Guard
    partition: int
    events: list[NewEvent] = field(default_factory=list)
    next_runs: list[NextRun] = field(default_factory=list)
    dropped: list[UUID] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    jobs: Sequence[JobRow] = ()
    job_moves: list[JobMove] = field(default_factory=list)
    dead_letters: Sequence[DeadLetter] = ()
    revived: Sequence[UUID] = ()
    discarded: Sequence[UUID] = ()
    leaders: Sequence[Leader] = ()
    lanes: list[Lane] = field(default_factory=list)
    subjects: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()

    @property
    def claims(self) -> int:
        """How many slots it needs in each of its lanes."""
        return sum(type(new.event) is Claimed for new in self.events)


def decide_on_job(
    before: JobState | None, job_id: UUID, events: Sequence[JobEvent]
) -> tuple[Decision, JobState]:
    """The decision that appends ``events`` to a job, and the state after them."""
    version = 0 if before is None else before.version
    fire = before.next_fire if before is not None and before.status == "active" else None
    state = before
    decision = Decision(Guard("job", job_id, version, fire), -1)
    for event in events:
        state = evolve_job(state, job_id, event)
        decision.events.append(NewEvent(job_id, state.version, event))
    assert state is not None
    decision.partition = state.partition
    _write_job(decision, state)
    return decision, state


def decide_on_occurrence(
    before: OccurrenceState, events: Sequence[OccurrenceEvent], *, name: str = ""
) -> tuple[Decision, OccurrenceState]:
    """The decision that appends ``events`` to an occurrence, and the state after them.

    ``name`` is the handler's, for the row of a dead letter.
    """
    guard = Guard("next_run", before.id, before.version, None, before.state, before.attempt)
    if before.finished:
        guard = Guard("nothing", before.id, before.version)
    decision = Decision(guard, before.partition)
    after = add_to_occurrence(decision, before, events, name=name)
    return decision, after


def decide_on_birth(
    job_id: UUID, registered: Registered, *, event_json: bytes, definition_json: str
) -> tuple[Decision, JobState]:
    """As :func:`decide_on_job`, for the first event of a job that is at hand in JSON too."""
    state = evolve_job(None, job_id, registered)
    decision = Decision(Guard("job", job_id, 0), state.partition)
    decision.events.append(NewEvent(job_id, 1, registered, event_json))
    _write_job(decision, state, definition_json)
    return decision, state


def add_to_occurrence(
    decision: Decision,
    before: OccurrenceState,
    events: Sequence[OccurrenceEvent],
    *,
    name: str = "",
) -> OccurrenceState:
    """Adds an occurrence's events and rows to a decision; returns the state after them."""
    state, letter = before, None
    for event in events:
        state = evolve_occurrence(state, before.id, event)
        decision.events.append(NewEvent(before.id, state.version, event))
        if type(event) is DeadLettered:
            letter = dead_letter(state, event, name)
    if state.finished:
        if not before.finished:
            decision.dropped.append(before.id)
        decision.executions.append(execution(state))
        if state.state == "dead" and letter is not None:
            decision.dead_letters = [*decision.dead_letters, letter]
        elif before.state == "dead":
            decision.discarded = [*decision.discarded, before.id]
    else:
        decision.next_runs.append(occurrence_next_run(state))
        if before.finished:
            decision.revived = [*decision.revived, before.id]
    return state


def decide_on_fires(
    job: JobState,
    due_at: datetime,
    claims: Sequence[tuple[OccurrenceState, Claimed]],
    job_events: Sequence[JobEvent],
) -> tuple[Decision, JobState, list[OccurrenceState]]:
    """The leader's decision on a job that is due: claims, and what the policies drop.

    It rests on the job's index row at its version and due time, so a job that was cancelled, paused
    or changed a moment ago fires nothing.
    """
    decision = Decision(Guard("next_run", job.id, job.version, due_at), job.partition)
    state = job
    claimed: list[OccurrenceState] = []
    for before, event in claims:
        claimed.append(add_to_occurrence(decision, before, [event]))
        assert event.fires is not None
        if event.fires > state.fires:
            state = advance(state, event.next_fire, event.fires)
    furthest = state
    for event in job_events:
        state = evolve_job(state, job.id, event)
        decision.events.append(NewEvent(job.id, state.version, event))
        # A range dropped before the last claim must not move the job back behind that claim.
        if type(event) is FiresSkipped and event.fires < furthest.fires:
            state = advance(state, furthest.next_fire, furthest.fires)
    if state.version != job.version:
        decision.job_moves.append(job_move(state))
    _index_job(decision, state)
    return decision, state, claimed


def decide_on_partition(
    before: PartitionState, events: Sequence[PartitionEvent], lease_s: float
) -> tuple[Decision, PartitionState]:
    """The decision that appends ``events`` to a partition's stream, and the state after them."""
    decision = Decision(Guard("partition", before.stream, before.version), before.partition)
    state = before
    for event in events:
        state = evolve_partition(state, event)
        decision.events.append(NewEvent(before.stream, state.version, event))
    leader = Leader(before.partition, state.version, state.instance, state.token, lease_s)
    decision.leaders = [leader]
    return decision, state


def _write_job(decision: Decision, state: JobState, definition_json: str | None = None) -> None:
    decision.jobs = [job_row(state, definition_json)]
    if state.definition.subject is not None and state.status in ("active", "paused"):
        decision.subjects = (state.definition.subject,)
    _index_job(decision, state)


def _index_job(decision: Decision, state: JobState) -> None:
    row = job_next_run(state)
    if row is None:
        decision.dropped.append(state.id)
    else:
        decision.next_runs.append(row)
