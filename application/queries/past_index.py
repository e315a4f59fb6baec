"""The next-run index as it was at an instant, folded from the log: what was due, and when."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nsmallest
from uuid import UUID

from horolog.application.answers.index_entry import IndexEntry
from horolog.application.queries.past_jobs import BATCH, states_at
from horolog.application.queries.past_ports import MaybeOpen, ReadsPast
from horolog.domain.job import JobState
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence import OccurrenceState, evolve
from horolog.domain.occurrence_events import Claimed
from horolog.domain.orders import ordered_by
from horolog.projections.rows import NextRun, job_next_run, occurrence_next_run


def due_at(
    past: ReadsPast, moment: datetime, *, after: UUID | None, limit: int
) -> list[IndexEntry]:
    """The first ``limit`` entries by due time, behind the entry ``after`` where that is given.

    All of it is folded for each page, job by job, and only the page is kept.
    """
    position = past.position_at(moment)
    entries = _entries(past, moment, position)
    if after is None:
        return nsmallest(limit, entries, key=_place)
    known = list(entries)
    begin = next((_place(entry) for entry in known if entry.id == after), None)
    if begin is None:
        return []
    return nsmallest(limit, (entry for entry in known if _place(entry) > begin), key=_place)


def _place(entry: IndexEntry) -> tuple[datetime, UUID]:
    return (entry.due_at, entry.id)


def _entries(past: ReadsPast, moment: datetime, position: int) -> Iterator[IndexEntry]:
    maybe = past.maybe_open(moment, position)
    # A run may outlive its job's schedule, so these jobs are looked at whatever their status was.
    of_runs = sorted({one.job_id for one in maybe})
    jobs = {job.id: job for job in states_at(past, of_runs, moment, position)}
    for row, at in _open_runs(past, maybe, jobs, position):
        yield _entry(row, at, jobs[row.job_id].definition.name)
    after: UUID | None = None
    while ids := past.job_ids(name=None, after=after, limit=BATCH):
        for state in states_at(past, ids, moment, position, active=True):
            row = job_next_run(state)
            if row is not None:
                assert row.due_at is not None
                yield _entry(row, row.due_at, state.definition.name)
        after = ids[-1]


def _open_runs(
    past: ReadsPast,
    maybe: Sequence[MaybeOpen],
    jobs: Mapping[UUID, JobState],
    position: int,
) -> Iterator[tuple[NextRun, datetime]]:
    orders = _ordered(past, maybe, jobs, position)
    for one in maybe:
        state = _folded(one, orders) if one.job_id in jobs else None
        if state is None or state.finished:
            continue
        row = occurrence_next_run(state)
        if row.due_at is not None:
            yield row, row.due_at
        else:
            assert row.look_after_s is not None
            yield row, one.events[-1].recorded_at + timedelta(seconds=row.look_after_s)


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


def _entry(row: NextRun, at: datetime, name: str) -> IndexEntry:
    return IndexEntry(
        due_at=at,
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
