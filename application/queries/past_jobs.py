"""Jobs as they were: the log folded up to an instant.

A job's state is its own events and the last claim that moved its schedule on, in the order of their
positions. The other claims need not be read: each moved the job to where the next one took it from.
Claims before the job was last rescheduled count for nothing, and no claim is older than the first
fire time since then; so the search for the last one is short.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from horolog.application.queries.past_ports import (
    LEAD,
    ClaimsSought,
    Move,
    PastJob,
    ReadsPastJobs,
)
from horolog.application.queries.ports import JobFilter
from horolog.domain.job import JobState, advance, evolve
from horolog.domain.job_events import Registered, Rescheduled, Resumed, ZoneDataChanged

BATCH = 5_000


def job_at(past: ReadsPastJobs, job_id: UUID, moment: datetime) -> JobState | None:
    """The job as it was at ``moment``; ``None`` if it was not registered yet."""
    position = past.position_at(moment)
    return next(iter(states_at(past, [job_id], moment, position)), None)


def jobs_at(
    past: ReadsPastJobs, wanted: JobFilter, moment: datetime, *, after: UUID | None, limit: int
) -> list[JobState]:
    """A page of the jobs as they were at ``moment``, in the order of ids."""
    position = past.position_at(moment)
    found: list[JobState] = []
    while len(found) < limit:
        batch = min(BATCH, limit) if wanted == JobFilter(name=wanted.name) else BATCH
        ids = past.job_ids(name=wanted.name, after=after, limit=batch)
        found += (
            state for state in states_at(past, ids, moment, position) if _is_wanted(state, wanted)
        )
        if len(ids) < batch:
            break
        after = ids[-1]
    return found[:limit]


def states_at(
    past: ReadsPastJobs,
    ids: Sequence[UUID],
    moment: datetime,
    position: int,
    *,
    active: bool = False,
) -> Iterator[JobState]:
    """Those of the jobs that existed, by id; with ``active`` those whose schedule was going on."""
    jobs = past.jobs_at(ids, position, active=active)
    sought = [found for job in jobs if (found := _claims_of(job, moment)) is not None]
    claims: Mapping[UUID, Move] = {}
    if sought:
        claims = past.last_claims(sought, moment, position)
    for job in jobs:
        state = _folded(job, claims.get(job.id))
        if state is not None and (not active or state.status == "active"):
            yield state


def _claims_of(job: PastJob, moment: datetime) -> ClaimsSought | None:
    """Where the claims that count may be; ``None`` where no fire time can have been claimed."""
    since, begin = _first_fire(job)
    if since is None or since > moment + LEAD:
        return None
    return ClaimsSought(job.id, since, begin)


def _first_fire(job: PastJob) -> tuple[datetime | None, int]:
    """The earliest fire time that was stated since the job got its schedule, and when it got it.

    (New rules of a zone may have set the fire time back.)
    """
    since, begin = None, 0
    for recorded in job.events:
        event = recorded.event
        if isinstance(event, Registered | Rescheduled):
            since, begin = event.next_fire, recorded.position
        elif isinstance(event, Resumed | ZoneDataChanged) and event.next_fire is not None:
            since = event.next_fire if since is None else min(since, event.next_fire)
    return since, begin


def _folded(job: PastJob, claim: Move | None) -> JobState | None:
    """The state after the job's own events and the moves of its schedule, in the log's order."""
    state: JobState | None = None
    moves = [(move.position, move is claim, move) for move in (job.dropped, claim) if move]
    moves.sort()
    for recorded in job.events:
        while moves and moves[0][0] < recorded.position:
            state = _moved(state, *moves.pop(0)[1:])
        state = evolve(state, job.id, recorded.event)
    for _, is_claim, move in moves:
        state = _moved(state, is_claim, move)
    if state is None or state.version == job.version:
        return state
    return replace(state, version=job.version)


def _moved(state: JobState | None, is_claim: bool, move: Move) -> JobState | None:
    """A claim moves the schedule on from where it stands, and a dropped range never back."""
    if state is None or move.fires < state.fires or (is_claim and move.fires == state.fires):
        return state
    return advance(state, move.next_fire, move.fires)


def _is_wanted(state: JobState, wanted: JobFilter) -> bool:
    labels = state.definition.labels
    if wanted.status not in (None, state.status):
        return False
    if wanted.label is None:
        return True
    name, value = wanted.label
    return name in labels and value in (None, labels[name])
