"""Jobs as they were: the log folded up to an instant.

A job's state is its own events and the last claim that moved its schedule on, in the order of their
positions. The other claims need not be read: each moved the job to where the next one took it from.
Claims before the job was last rescheduled count for nothing, and no claim is older than the first
fire time since then; so the search for the last one is short.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from pydantic_core import from_json

from horolog.application.queries.past_ports import (
    LEAD,
    ClaimsSought,
    Move,
    PastJob,
    ReadsPastJobs,
    StoredEvent,
)
from horolog.application.queries.ports import JobFilter
from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import Event, read_event
from horolog.domain.job import JobState, advance, evolve
from horolog.domain.job_events import Registered, Rescheduled, Resumed, ZoneDataChanged

A = TypeVar("A")
B = TypeVar("B")

BATCH: Final = 1_000
AHEAD: Final = 2
"""Batches that are fetched at once, each by a connection of its own."""

_BEGINNING: Final = {Registered.topic, Rescheduled.topic}
_STATING: Final = {*_BEGINNING, Resumed.topic, ZoneDataChanged.topic}


class Known(NamedTuple):
    """What there is to fold: a job's own events, and the last claim that moved its schedule."""

    job: PastJob
    claim: Move | None


def job_at(past: ReadsPastJobs, job_id: UUID, moment: datetime) -> JobState | None:
    """The job as it was at ``moment``; ``None`` if it was not registered yet."""
    position = past.position_at(moment)
    return next(iter(states_at(past, [job_id], moment, position)), None)


def jobs_at(
    past: ReadsPastJobs, wanted: JobFilter, moment: datetime, *, after: UUID | None, limit: int
) -> list[JobState]:
    """A page of the jobs as they were at ``moment``, by id; one that is not full is the last."""
    position = past.position_at(moment)
    every = wanted == JobFilter(name=wanted.name)
    found: list[JobState] = []
    while True:
        # Where all are wanted, no more than those are read (and some were not registered yet).
        ids = Ids(past, wanted.name, after, limit - len(found) if every else None)
        for known in _ahead(lambda part: known_at(past, part, moment, position), ids):
            states = (folded(one) for one in known)
            found += (state for state in states if state is not None and _is_wanted(state, wanted))
            if len(found) >= limit:
                return found[:limit]
        if ids.exhausted:
            return found
        after = ids.last


def states_at(
    past: ReadsPastJobs, ids: Sequence[UUID], moment: datetime, position: int
) -> Iterator[JobState]:
    """Those of the jobs that existed, by id."""
    for known in known_at(past, ids, moment, position):
        state = folded(known)
        if state is not None:
            yield state


def active_at(past: ReadsPastJobs, moment: datetime, position: int) -> Iterator[Known]:
    """All jobs but those that had ended or been paused at last, unfolded."""
    ids = Ids(past, None, None)
    for known in _ahead(lambda part: known_at(past, part, moment, position, active=True), ids):
        yield from known


def known_at(
    past: ReadsPastJobs,
    ids: Sequence[UUID],
    moment: datetime,
    position: int,
    *,
    active: bool = False,
) -> list[Known]:
    """What the log knows of these jobs; see :meth:`ReadsPastJobs.jobs_at` for ``active``."""
    jobs = past.jobs_at(ids, position, active=active)
    sought = [found for job in jobs if (found := _claims_of(job, moment)) is not None]
    claims: Mapping[UUID, Move] = {}
    if sought:
        claims = past.last_claims(sought, moment, position)
    return [Known(job, claims.get(job.id)) for job in jobs]


class Ids:
    """Batches of the ids of jobs above ``last``, ``most`` of them in all."""

    def __init__(
        self, past: ReadsPastJobs, name: str | None, last: UUID | None, most: int | None = None
    ) -> None:
        self.last = last
        self.exhausted = False
        self._past = past
        self._name = name
        self._most = most

    def __iter__(self) -> Iterator[list[UUID]]:
        return self

    def __next__(self) -> list[UUID]:
        limit = BATCH if self._most is None else min(BATCH, self._most)
        if self.exhausted or limit == 0:
            raise StopIteration
        ids = self._past.job_ids(name=self._name, after=self.last, limit=limit)
        self.exhausted = len(ids) < limit
        if self._most is not None:
            self._most -= len(ids)
        if not ids:
            raise StopIteration
        self.last = ids[-1]
        return ids


def _ahead(fetch: Callable[[A], B], items: Iterator[A]) -> Iterator[B]:
    """What ``fetch`` gives of each item, in order; some are fetched while one is worked on."""
    with ThreadPoolExecutor(AHEAD, thread_name_prefix="horolog-past") as threads:
        coming = deque(threads.submit(fetch, item) for item in islice(items, AHEAD))
        while coming:
            present = coming.popleft().result()
            coming.extend(threads.submit(fetch, item) for item in islice(items, 1))
            yield present


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
    for stored in job.events:
        if stored.topic in _STATING:
            stated = _stated_fire(stored.state)
            if stored.topic in _BEGINNING:
                since, begin = stated, stored.position
            elif stated is not None:
                since = stated if since is None else min(since, stated)
    return since, begin


def _stated_fire(state: bytes) -> datetime | None:
    """The next fire time that an event states."""
    following = from_json(state).get("next_fire")
    return None if following is None else datetime.fromisoformat(following)


def folded(known: Known) -> JobState | None:
    """The state after the job's own events and the moves of its schedule, in the log's order."""
    job, moves = known.job, _moves(known)
    state: JobState | None = None
    for stored in job.events:
        while state is not None and moves and moves[0][0].position < stored.position:
            state = _moved(state, *moves.pop(0))
        state = evolve(state, job.id, _read(job, stored))
    if state is None:
        return None
    fires, following = state.fires, state.next_fire
    for move, is_claim in moves:
        if _counts(move, is_claim, fires):
            fires, following = move.fires, move.next_fire
    if (job.version, fires) == (state.version, state.fires) and following == state.next_fire:
        return state
    return replace(state, version=job.version, fires=fires, next_fire=following)


def _read(job: PastJob, stored: StoredEvent) -> Event:
    try:
        return read_event(stored.topic, stored.state)
    except UnreadableEvent:  # once more, with its place: naming that of each event takes its time
        where = f"at position {stored.position} ({job.id}:{stored.version})"
        return read_event(stored.topic, bytes(stored.state), where=where)


def plain_fire(known: Known) -> datetime | None:
    """The next fire time of a job that was registered and never changed, if it has no jitter; of
    any other ``None``. The same as :func:`folded` says, for a fraction of the work."""
    job = known.job
    if len(job.events) > 1 or job.events[0].topic != Registered.topic:
        return None
    said = from_json(job.events[0].state)
    if said["definition"]["schedule"].get("jitter"):
        return None
    fires, following = 0, None
    for move, is_claim in _moves(known):
        if _counts(move, is_claim, fires):
            fires, following = move.fires, move
    if following is not None:
        return following.next_fire
    stated = said.get("next_fire")
    return None if stated is None else datetime.fromisoformat(stated)


def _moves(known: Known) -> list[tuple[Move, bool]]:
    """What moved the schedule, in the log's order, and whether it was a claim."""
    dropped, claim = known.job.dropped, known.claim
    if dropped is None:
        return [] if claim is None else [(claim, True)]
    if claim is None:
        return [(dropped, False)]
    both = [(dropped, False), (claim, True)]
    return both if dropped.position < claim.position else both[::-1]


def _moved(state: JobState, move: Move, is_claim: bool) -> JobState:
    if not _counts(move, is_claim, state.fires):
        return state
    return advance(state, move.next_fire, move.fires)


def _counts(move: Move, is_claim: bool, fires: int) -> bool:
    """A claim moves the schedule on from where it stands, and a dropped range never back."""
    return move.fires > fires or (move.fires == fires and not is_claim)


def _is_wanted(state: JobState, wanted: JobFilter) -> bool:
    labels = state.definition.labels
    if wanted.status not in (None, state.status):
        return False
    if wanted.label is None:
        return True
    name, value = wanted.label
    return name in labels and value in (None, labels[name])
