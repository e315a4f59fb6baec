"""What the leader decides on a due row of the index: pure, one row at a time.

A job that is due is claimed by its plan (:func:`plan_fires`); an occurrence that was ordered, or
waits for a retry, is claimed; one whose job was cancelled is skipped; an attempt whose lease ran
out is lost. Each answer is a decision for the log together with what follows from its acceptance.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter
from uuid import UUID

from horolog.application.decision import Decision, decide_on_fires, decide_on_occurrence
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.due_fires import Fire, SkippedRange, due_at, omitted_ranges
from horolog.domain.firing import MAX_CLAIMS, plan_fires
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.job_events import Completed, JobEvent
from horolog.domain.lanes import lanes_of
from horolog.domain.occurrence import (
    OccurrenceState,
    decide_cancel,
    decide_claim,
    decide_loss,
    decide_skip,
    ordered,
)
from horolog.domain.occurrence_events import Claimed
from horolog.domain.origin import Origin
from horolog.domain.record import record
from horolog.domain.schedule import Once, Schedule, tzdata_version


@dataclass(frozen=True)
class Terms:
    """Under what the leader decides: its tokens, the time (the database's), the claim window."""

    now: datetime
    tokens: dict[int, int]
    window_s: float
    origin: Origin

    @cached_property
    def completed(self) -> Completed:
        """The end of a job without a further fire time: the same for all that are decided on."""
        return Completed(**self.origin.fields())


@dataclass(slots=True)
class Proposal:
    """A decision, and the runs to publish once it was accepted.

    ``again_at``: the row stays due and is wanted again then; ``what`` names it for the counts.
    ``cancel_others``: the job's unfinished runs are to be cancelled, see :func:`decide_others`.
    """

    id: UUID
    partition: int
    priority: int
    what: str
    decision: Decision
    job: JobState
    claimed: list[OccurrenceState] = field(default_factory=list)
    lost_before: bool = False
    replayed: bool = False
    since: datetime | None = None
    again_at: datetime | None = None
    cancel_others: bool = False

    @property
    def queue(self) -> str:
        return self.job.definition.queue


@record
class Later:
    """Nothing to decide before ``at``."""

    id: UUID
    partition: int
    at: datetime
    waits: bool = False
    cancel_others: JobState | None = None


@record
class Fired:
    """What is known beside the row of a job: when it was ``attended`` to while it waited, and which
    of its occurrences exist ``already`` (looked up only after the log refused to claim one)."""

    attended: datetime | None = None
    already: Collection[UUID] = ()


def decide_job(row: DueJob, terms: Terms, fired: Fired | None = None) -> Proposal | Later | None:
    """The decision on a job's next fire."""
    job, fired = row.job, fired or Fired()
    if row.due_at > terms.now:
        return Later(job.id, job.partition, row.due_at)
    schedule = job.definition.parsed_schedule()
    token = terms.tokens.get(job.partition)
    if token is None or job.next_fire is None or job.next_fire > terms.now:
        return None
    lanes = lanes_of(job.id, job.definition, row.queue_limit)
    # A decision passes whole or not at all: with limits, fire times go one by one.
    most = 1 if lanes else MAX_CLAIMS
    plan = plan_fires(
        job, now=terms.now, unfinished=row.unfinished, attended=fired.attended, most=most
    )
    again_at = (
        None if plan.again_after_s is None else terms.now + timedelta(seconds=plan.again_after_s)
    )
    if plan.wait:
        others = job if plan.cancel_others else None
        return Later(job.id, job.partition, again_at or terms.now, True, others)
    skipped = list(plan.skipped)
    claims: list[tuple[OccurrenceState, Claimed]] = []
    for fire in plan.fires:
        identity = occurrence_id(job.id, fire.at)
        if identity in fired.already:
            skipped.append(_superseded(fire))
        else:
            claims.append(_claim(job, schedule, fire, identity, token, terms))
    last = _last(plan.fires, skipped)
    skipped += omitted_ranges(schedule, job.next_fire, last)
    skipped.sort(key=attrgetter("fires"))
    events: list[JobEvent] = [dropped.event(terms.origin) for dropped in skipped]
    if last.next_fire is None:
        events.append(terms.completed)
    decision, _, claimed = decide_on_fires(job, row.due_at, claims, events)
    decision.lanes = lanes if claims else []
    return Proposal(
        job.id,
        job.partition,
        job.definition.priority,
        "claimed",
        decision,
        job,
        claimed,
        again_at=again_at,
        cancel_others=plan.cancel_others,
    )


def others_of(answer: Proposal | Later | None) -> JobState | None:
    """The job whose unfinished runs are to be cancelled, if that is part of the answer."""
    if isinstance(answer, Proposal):
        return answer.job if answer.cancel_others else None
    return None if answer is None else answer.cancel_others


def decide_others(
    job: JobState, unfinished: Iterable[OccurrenceState], terms: Terms
) -> list[Proposal]:
    """The decisions that cancel a job's unfinished runs, in favour of the fire time that is due."""
    return [
        Proposal(
            state.id,
            state.partition,
            job.definition.priority,
            "cancelled",
            decide_on_occurrence(state, events)[0],
            job,
        )
        for state in unfinished
        if (events := decide_cancel(state, "overlap", origin=terms.origin))
    ]


def decide_occurrence(row: DueOccurrence, terms: Terms) -> Proposal | Later | None:
    """The decision on an occurrence that is scheduled, waits for a retry, or ran out of its lease.

    One that is claimed gives nothing: whether its message is still there is looked up elsewhere.
    """
    job, state = row.job, row.occurrence
    token = terms.tokens.get(state.partition)
    if token is None:
        return None
    if job.status == "cancelled" and (
        skipped := decide_skip(state, "cancelled", origin=terms.origin)
    ):
        decision, _ = decide_on_occurrence(state, skipped)
        return _proposal(row, "skipped", decision)
    if row.due_at > terms.now:
        return Later(state.id, state.partition, row.due_at)
    match state.state:
        case "scheduled" | "retrying":
            claim = decide_claim(
                state,
                job_version=job.version,
                token=token,
                window_s=terms.window_s,
                origin=terms.origin,
            )
            decision, after = decide_on_occurrence(state, [claim])
            decision.lanes = lanes_of(job.id, job.definition, row.queue_limit)
            return _proposal(row, "claimed", decision, after)
        case "running" | "stopping":
            lost = decide_loss(
                state,
                retry=job.definition.retry,
                on_unknown=job.definition.on_unknown,
                now=terms.now,
                owner=job.definition.owner,
                origin=terms.origin,
                since=row.since,
            )
            decision, _ = decide_on_occurrence(state, lost, name=job.definition.name)
            return _proposal(row, "lost", decision)
        case _:
            return None


def _proposal(
    row: DueOccurrence, what: str, decision: Decision, claimed: OccurrenceState | None = None
) -> Proposal:
    return Proposal(
        row.occurrence.id,
        row.occurrence.partition,
        row.job.definition.priority,
        what,
        decision,
        row.job,
        [] if claimed is None else [claimed],
        lost_before=row.lost,
        replayed=row.replayed,
        since=row.since,
    )


def _claim(
    job: JobState, schedule: Schedule, fire: Fire, identity: UUID, token: int, terms: Terms
) -> tuple[OccurrenceState, Claimed]:
    """The first claim of a fire time, which moves the job on."""
    due = due_at(schedule, job.id, fire.at)
    before = ordered(identity, job.id, job.partition, fire.at, "schedule")
    claimed = Claimed(
        job_id=job.id,
        job_version=job.version,
        fire_time=fire.at,
        attempt=1,
        partition=job.partition,
        token=token,
        window=terms.window_s,
        fires=fire.fires,
        next_fire=fire.next_fire,
        tzdata=_rests_on(schedule),
        due=None if due == fire.at else due,
        **terms.origin.fields(),
    )
    return before, claimed


def _rests_on(schedule: Schedule) -> str:
    """The release of the zone data that what follows rests on; none where that is nothing, and in
    no zone: the end of a one-off."""
    return "" if isinstance(schedule, Once) and schedule.zone is None else tzdata_version()


def _superseded(fire: Fire) -> SkippedRange:
    """A fire time whose occurrence is in the log already (a clock or a schedule was set back): it
    is not run again, and the job moves on."""
    return SkippedRange(fire.at, fire.at, 1, "superseded", fire.next_fire, fire.fires)


def _last(fires: list[Fire], skipped: list[SkippedRange]) -> Fire:
    """The furthest of what the plan used up."""
    if len(fires) == 1 and not skipped:
        return fires[0]
    ends = [Fire(dropped.last, dropped.next_fire, dropped.fires) for dropped in skipped]
    return max([*fires, *ends], key=lambda used: used.fires)
