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

from horolog.application.log import Recorded
from horolog.application.queries.past_ports import LEAD, ClaimsSought, PastJob, ReadsPastJobs
from horolog.application.queries.ports import JobFilter
from horolog.domain.job import JobState
from horolog.domain.job_events import Registered, Rescheduled
from horolog.projections.job_in_order import evolve_in_order

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
    claims: Mapping[UUID, Recorded] = {}
    if sought:
        claims = past.last_claims(sought, moment, position)
    for job in jobs:
        state = _folded(job, claims.get(job.id))
        if state is not None and (not active or state.status == "active"):
            yield state


def _claims_of(job: PastJob, moment: datetime) -> ClaimsSought | None:
    """Where the claims that count may be; ``None`` where no fire time can have been claimed."""
    begin: Recorded | None = None
    stated: list[datetime] = []
    for recorded in job.events:
        if isinstance(recorded.event, Registered | Rescheduled):
            begin, stated = recorded, []
        if (fire := getattr(recorded.event, "next_fire", None)) is not None:
            stated.append(fire)
    if begin is None or not stated or min(stated) > moment + LEAD:
        return None
    return ClaimsSought(job.id, min(stated), begin.position)


def _folded(job: PastJob, claim: Recorded | None) -> JobState | None:
    events = list(job.events)
    if claim is not None:
        events.append(claim)
        events.sort(key=lambda recorded: recorded.position)
    state: JobState | None = None
    for recorded in events:
        state = evolve_in_order(state, job.id, recorded.event)
    return None if state is None else replace(state, version=job.version)


def _is_wanted(state: JobState, wanted: JobFilter) -> bool:
    labels = state.definition.labels
    if wanted.status not in (None, state.status):
        return False
    if wanted.label is None:
        return True
    name, value = wanted.label
    return name in labels and value in (None, labels[name])
