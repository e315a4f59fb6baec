"""The next-run index as it was at an instant, folded from the log: what was due, and when."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nsmallest
from uuid import UUID

from horolog.application.answers.index_entry import IndexEntry
from horolog.application.queries.past_jobs import Known, active_at, folded, plain_fire, states_at
from horolog.application.queries.past_ports import MaybeOpen, ReadsPast
from horolog.domain.job import JobState
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence import OccurrenceState, evolve
from horolog.domain.occurrence_events import Attempted, Claimed
from horolog.domain.orders import ordered_by
from horolog.projections.rows import fire_due_at, job_next_run, occurrence_next_run


def due_at(
    past: ReadsPast, moment: datetime, *, after: UUID | None, limit: int
) -> list[IndexEntry]:
    """The first ``limit`` entries by due time, behind the entry ``after`` where that is given.

    All of it is folded for each page, job by job, and only the page is kept.
    """
    places = _places(past, moment, past.position_at(moment))
    if after is not None:
        known = list(places)
        begin = next((place for place in known if place[1] == after), None)
        places = (place for place in known if begin is not None and place[:2] > begin[:2])
    page = nsmallest(limit, places, key=lambda place: place[:2])
    return [_entry(due, subject) for due, _, subject in page]


Subject = Known | tuple[OccurrenceState, str]
"""A job whose next fire it is, or an unfinished occurrence and the name of its job."""


def _places(
    past: ReadsPast, moment: datetime, position: int
) -> Iterator[tuple[datetime, UUID, Subject]]:
    """When each entry was due, its id, and what it was: an entry is made of those of the page."""
    maybe = past.maybe_open(moment, position)
    # A run may outlive its job's schedule, so these jobs are looked at whatever their status was.
    of_runs = sorted({one.job_id for one in maybe})
    jobs = {job.id: job for job in states_at(past, of_runs, moment, position)}
    for state, at in _open_runs(past, maybe, jobs, position):
        yield at, state.id, (state, jobs[state.job_id].definition.name)
    for known in active_at(past, moment, position):
        if (due := plain_fire(known) or _fire(known)) is not None:
            yield due, known.job.id, known


def _fire(known: Known) -> datetime | None:
    job = folded(known)
    if job is None or job.status != "active" or job.next_fire is None:
        return None
    return fire_due_at(job, job.next_fire)


def _open_runs(
    past: ReadsPast,
    maybe: Sequence[MaybeOpen],
    jobs: Mapping[UUID, JobState],
    position: int,
) -> Iterator[tuple[OccurrenceState, datetime]]:
    orders = _ordered(past, maybe, jobs, position)
    for one in maybe:
        state = _folded(one, orders) if one.job_id in jobs else None
        if state is None or state.finished:
            continue
        if state.due is not None:
            yield state, state.due
        else:
            assert state.look_after_s is not None
            yield state, _leased_at(one) + timedelta(seconds=state.look_after_s)


def _leased_at(one: MaybeOpen) -> datetime:
    """When the claim or the attempt was made whose window or lease still runs: a request to stop
    gives the attempt no more time."""
    return next(
        recorded.recorded_at
        for recorded in reversed(one.events)
        if isinstance(recorded.event, Claimed | Attempted)
    )


def _ordered(
    past: ReadsPast, maybe: Sequence[MaybeOpen], jobs: Mapping[UUID, JobState], position: int
) -> Mapping[UUID, OccurrenceState]:
    """The ordered ones as they were before their first event: what ordered them says it."""
    waiting = {
        one.id: one.job_id
        for one in maybe
        if one.kind != "schedule" and one.job_id in jobs and not _begins_with_its_claim(one)
    }
    found: dict[UUID, OccurrenceState] = {}
    for recorded in past.orders(waiting, position) if waiting else ():
        assert isinstance(recorded.event, JobEvent)
        for state in ordered_by(jobs[recorded.stream], recorded.event, recorded.recorded_at):
            found[state.id] = state
    return found


def _begins_with_its_claim(one: MaybeOpen) -> bool:
    return bool(one.events) and isinstance(one.events[0].event, Claimed)


def _folded(one: MaybeOpen, orders: Mapping[UUID, OccurrenceState]) -> OccurrenceState | None:
    state = orders.get(one.id)
    for recorded in one.events:
        if state is None and not isinstance(recorded.event, Claimed):
            return None  # what ordered it has left the log
        state = replace(evolve(state, one.id, recorded.event), version=recorded.version)
    return state


def _entry(due: datetime, subject: Subject) -> IndexEntry:
    if isinstance(subject, Known):
        job = folded(subject)
        assert job is not None
        row, name = job_next_run(job), job.definition.name
    else:
        row, name = occurrence_next_run(subject[0]), subject[1]
    assert row is not None
    return IndexEntry(
        due_at=due,
        id=row.id,
        job_id=row.job_id,
        name=name,
        kind=row.kind,
        state=row.state,
        fire_time=row.fire_time,
        attempt=row.attempt,
        failures=row.failures,
        version=row.version,
        partition=row.partition,
    )
