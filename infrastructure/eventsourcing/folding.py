"""The decisions behind events that come through the library: folded states and the rows they mean.

Horolog's own commands decide and so know the states. Whoever stores events through the library's
event store brings events alone; here they are folded onto what the log holds, and become decisions
like any others, with guards and with the rows of the inline read models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from horolog.application.decision import (
    Decision,
    Guard,
    NewEvent,
    add_to_occurrence,
    decide_on_occurrence,
    decide_on_partition,
)
from horolog.application.states import ReadsStates
from horolog.domain.errors import UnreadableEvent, VersionConflict
from horolog.domain.job import JobState
from horolog.domain.job_events import (
    BackfillRequested,
    JobEvent,
    Registered,
    Triggered,
)
from horolog.domain.occurrence import OccurrenceState, ordered
from horolog.domain.occurrence import evolve as evolve_occurrence
from horolog.domain.occurrence_events import Claimed, DeadLettered, OccurrenceEvent
from horolog.domain.orders import ordered_by
from horolog.domain.partition import Elected, PartitionEvent, PartitionState
from horolog.projections.job_in_order import evolve_in_order, moved_by
from horolog.projections.rows import job_next_run, job_row, occurrence_next_run

S = TypeVar("S")
E = TypeVar("E")


@dataclass(slots=True)
class Change(Generic[S, E]):
    """A stream before and after its new events."""

    before: S
    after: S
    events: list[E]


@dataclass(slots=True)
class Folding:
    """Takes events in the order of their positions; :meth:`decisions` says what they amount to.

    Raises ``VersionConflict`` for an event that is not the next of its stream, ``UnreadableEvent``
    for one that cannot be where it is.
    """

    states: ReadsStates
    partition: Callable[[UUID], PartitionState | None]
    now: Callable[[], datetime]
    _jobs: dict[UUID, Change[JobState | None, JobEvent]] = field(
        default_factory=dict[UUID, Change[JobState | None, JobEvent]]
    )
    _occurrences: dict[UUID, Change[OccurrenceState | None, OccurrenceEvent]] = field(
        default_factory=dict[UUID, Change[OccurrenceState | None, OccurrenceEvent]]
    )
    _partitions: dict[UUID, Change[PartitionState, PartitionEvent]] = field(
        default_factory=dict[UUID, Change[PartitionState, PartitionEvent]]
    )

    def add(self, new: NewEvent) -> None:
        match new.event:
            case JobEvent():
                self._add_to_job(new, new.event)
            case OccurrenceEvent():
                self._add_to_occurrence(new, new.event)
            case PartitionEvent():
                self._add_to_partition(new, new.event)
            case _:
                raise _misplaced(new, "it is no event of a job, an occurrence or a partition")

    def decisions(self) -> list[Decision]:
        """One for each stream that changes: occurrences after the jobs that order them."""
        return [
            *(
                self._job_decision(job_id, change)
                for job_id, change in self._jobs.items()
                if change.after != change.before
            ),
            *(
                self._occurrence_decision(identity, change)
                for identity, change in self._occurrences.items()
            ),
            *(_partition_decision(change) for change in self._partitions.values()),
        ]

    def _job(self, job_id: UUID) -> Change[JobState | None, JobEvent]:
        if job_id not in self._jobs:
            state = self.states.job(job_id)
            self._jobs[job_id] = Change(state, state, [])
        return self._jobs[job_id]

    def _add_to_job(self, new: NewEvent, event: JobEvent) -> None:
        change = self._job(new.stream)
        state = change.after
        _check_version(new, 0 if state is None else state.version)
        if (state is None) is not isinstance(event, Registered):
            raise _misplaced(new, "a job begins with job.registered.1, and only once")
        change.after = evolve_in_order(state, new.stream, event)
        change.events.append(event)
        if isinstance(event, Triggered | BackfillRequested):
            for waiting in ordered_by(change.after, event, self.now()):
                self._occurrences[waiting.id] = Change(None, waiting, [])

    def _add_to_occurrence(self, new: NewEvent, event: OccurrenceEvent) -> None:
        if new.stream not in self._occurrences:
            state = self.states.occurrence(new.stream)
            self._occurrences[new.stream] = Change(state, state, [])
        change = self._occurrences[new.stream]
        _check_version(new, 0 if change.after is None else change.after.version)
        if change.after is None and not isinstance(event, Claimed):
            raise _misplaced(new, "an occurrence that nobody ordered begins with its claim")
        change.after = evolve_occurrence(change.after, new.stream, event)
        change.events.append(event)
        if isinstance(event, Claimed) and event.fires is not None:
            self._move_on(new, event)

    def _move_on(self, new: NewEvent, event: Claimed) -> None:
        """The first claim of one of the schedule's fire times moves its job on."""
        job = self._job(event.job_id)
        if job.after is None:
            raise _misplaced(new, f"the log has no job {event.job_id}")
        job.after = moved_by(job.after, event)

    def _add_to_partition(self, new: NewEvent, event: PartitionEvent) -> None:
        if new.stream not in self._partitions:
            state = self.partition(new.stream)
            if state is None:
                raise _misplaced(new, "this namespace has no partition with that stream")
            self._partitions[new.stream] = Change(state, state, [])
        change = self._partitions[new.stream]
        _check_version(new, change.before.version + len(change.events))
        change.events.append(event)

    def _job_decision(self, job_id: UUID, change: Change[JobState | None, JobEvent]) -> Decision:
        before, after = change.before, change.after
        assert after is not None
        version = 0 if before is None else before.version
        fire = before.next_fire if before is not None and before.status == "active" else None
        decision = Decision(Guard("job", job_id, version, fire), after.partition)
        for number, event in enumerate(change.events, version + 1):
            decision.events.append(NewEvent(job_id, number, event))
        if change.events:
            decision.jobs = [job_row(after)]
        row = job_next_run(after)
        if row is None:
            decision.dropped.append(job_id)
        else:
            decision.next_runs.append(row)
        return decision

    def _occurrence_decision(
        self, identity: UUID, change: Change[OccurrenceState | None, OccurrenceEvent]
    ) -> Decision:
        before, after = change.before, change.after
        assert after is not None
        if after.state == "retrying" and after.due is None:
            raise UnreadableEvent(
                f"event {identity}:{after.version} says that nobody tries again: what follows from"
                " that (occurrence.dead_lettered.1) has to be stored in the same call"
            )
        name = ""
        if any(isinstance(event, DeadLettered) for event in change.events):
            job = self._job(after.job_id).after
            name = "" if job is None else job.definition.name
        if before is not None:
            return decide_on_occurrence(before, change.events, name=name)[0]
        decision = Decision(Guard("nothing", identity, 0), after.partition)
        if change.events:
            born = ordered(identity, after.job_id, after.partition, after.fire_time, after.kind)
            add_to_occurrence(decision, born, change.events, name=name)
        else:
            decision.next_runs.append(occurrence_next_run(after))
        return decision


def folded(
    events: Sequence[NewEvent],
    states: ReadsStates,
    partition: Callable[[UUID], PartitionState | None],
    now: Callable[[], datetime],
) -> list[Decision]:
    """The decisions that ``events`` amount to, on what the log holds now."""
    folding = Folding(states, partition, now)
    for event in events:
        folding.add(event)
    return folding.decisions()


def _partition_decision(change: Change[PartitionState, PartitionEvent]) -> Decision:
    leases = [event.lease for event in change.events if isinstance(event, Elected)]
    lease_s = leases[-1] if leases else 0.0
    return decide_on_partition(change.before, change.events, lease_s)[0]


def _check_version(new: NewEvent, present: int) -> None:
    if new.version != present + 1:
        raise VersionConflict(
            f"event {new.stream}:{new.version} ({new.event.topic}) cannot be stored: its stream is"
            f" at version {present}, so the next one is {present + 1}",
            seen=new.version - 1,
            current=present,
        )


def _misplaced(new: NewEvent, why: str) -> UnreadableEvent:
    return UnreadableEvent(f"event {new.stream}:{new.version} ({new.event.topic}): {why}")
