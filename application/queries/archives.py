"""What has left the log by retention, answered from its archive, and marked as such.

Jobs and partitions never leave the log; occurrences do, with all of their events. So only what is
asked of an occurrence goes to the archive, and only where the log has nothing of it any more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

from horolog.application.answers.execution import Execution
from horolog.application.answers.explanation import Explanation
from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.answers.occurrence import Occurrence
from horolog.application.log import Recorded
from horolog.application.queries.audit_ports import ExecutionChoice, ReadsStreams
from horolog.application.queries.executed import execution_of, is_wanted, ran
from horolog.application.queries.explaining import Explaining, ReadsStream
from horolog.application.states import ReadsStates
from horolog.domain.errors import InvalidPolicy
from horolog.domain.ids import fire_millisecond
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence import OccurrenceState, evolve_all
from horolog.domain.occurrence_events import Claimed
from horolog.domain.orders import ordered_by
from horolog.projections.rows import JobRow, execution, job_row

CHUNK = 1_000
_ORDERS_AT_ONCE = 50
"""A backfill's order names up to 1,000 runs."""


@dataclass(frozen=True, slots=True)
class ArchivedLife:
    """All events of an occurrence, by version, and the file that they were read from."""

    file: str
    events: Sequence[Recorded]

    @property
    def id(self) -> UUID:
        return self.events[0].stream

    def state(self, order: OccurrenceState | None = None) -> OccurrenceState | None:
        """``None`` for one that ended before any claim: what it was is in its ``order`` alone."""
        if order is None and not isinstance(self.events[0].event, Claimed):
            return None
        return evolve_all(order, self.id, [recorded.event for recorded in self.events])


class ReadsArchive(Protocol):
    """Files that retention has written. Reading one goes through the months that may hold it.

    Errors: ``InvalidSetting`` for files that cannot be read; ``UnreadableEvent``.
    """

    def life(self, occurrence_id: UUID) -> ArchivedLife | None: ...

    def claimed(self, wanted: ExecutionChoice, *, after: UUID | None, limit: int) -> list[UUID]:
        """Occurrences that were claimed, of the job and the fire times of the choice, by id."""
        ...

    def lives(self, ids: Sequence[UUID]) -> list[ArchivedLife]:
        """In the order of ids."""
        ...


def archived_history(life: ArchivedLife, *, after: int, limit: int) -> list[LoggedEvent]:
    """A page of its events, each marked with the file."""
    found = [one for one in life.events if one.version > after][:limit]
    return [replace(LoggedEvent.of(one), archive=life.file) for one in found]


def archived_explanation(
    life: ArchivedLife,
    log: ReadsStream,
    streams: ReadsStreams,
    states: ReadsStates,
    namespace: str,
) -> Explanation | None:
    """The causal story: its own part from the archive, that of its job from the log. ``None`` for
    one that ended before any claim, and whose order this log does not have."""
    state = life.state() or life.state(_as_ordered(life.id, streams, states))
    if state is None:
        return None
    found = Occurrence.of(state, finished_at=life.events[-1].recorded_at)
    story = Explaining(_LifeAndLog(life, log), streams, namespace).explain(found)
    return replace(story, archive=life.file)


def archived_executions(
    archive: ReadsArchive,
    states: ReadsStates,
    wanted: ExecutionChoice,
    *,
    after: UUID | None,
    limit: int,
) -> list[Execution]:
    """Runs that have left the log, in the order of fire times; as ``ListsExecutions`` promises."""
    if wanted.by_end:
        raise InvalidPolicy(
            "an archive is in the order of fire times: ask for since and until without by_end"
        )
    found: list[Execution] = []
    while len(found) < limit:
        ids = archive.claimed(wanted, after=after, limit=CHUNK)
        if not ids:
            break
        found += _wanted(archive.lives(ids), states, wanted)
        after = ids[-1]
    return found[:limit]


def merged(present: list[Execution], past: list[Execution], limit: int) -> list[Execution]:
    """Both in one order; what is still in the log (kept as unresolved) is told from the log."""
    known = {one.id for one in present}
    both = [*present, *(one for one in past if one.id not in known)]
    return sorted(both, key=lambda one: one.id)[:limit]


def _wanted(
    lives: Sequence[ArchivedLife], states: ReadsStates, wanted: ExecutionChoice
) -> Iterator[Execution]:
    ended = [(life, state) for life in lives if (state := life.state()) is not None]
    jobs = states.jobs(list({state.job_id for _, state in ended}))
    rows: dict[UUID, JobRow] = {job_id: job_row(job) for job_id, job in jobs.items()}
    for life, state in ended:
        if state.job_id in rows and state.finished:
            last = life.events[-1].recorded_at
            job = rows[state.job_id]
            one = execution_of(execution(state), job, life.events, last, archive=life.file)
            if is_wanted(one, job, life.events, wanted) and (wanted.state or ran(one)):
                yield one


def _as_ordered(
    occurrence_id: UUID, streams: ReadsStreams, states: ReadsStates
) -> OccurrenceState | None:
    """A run as it was ordered, from the event of its job that says so."""
    for order in _orders_that_may_be(occurrence_id, streams):
        job = states.job(order.stream)
        assert job is not None, "jobs never leave the log"
        assert isinstance(order.event, JobEvent)
        for one in ordered_by(job, order.event, order.recorded_at):
            if one.id == occurrence_id:
                return one
    return None


def _orders_that_may_be(occurrence_id: UUID, streams: ReadsStreams) -> Iterator[Recorded]:
    if (order := streams.order_of(occurrence_id)) is not None:
        yield order
        return
    after = 0
    while orders := streams.backfills_over(
        fire_millisecond(occurrence_id), after=after, limit=_ORDERS_AT_ONCE
    ):
        yield from orders
        after = orders[-1].position


class _LifeAndLog:
    """The log, with one life that has left it."""

    def __init__(self, life: ArchivedLife, log: ReadsStream) -> None:
        self._life = life
        self._log = log

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        if stream != self._life.id:
            return self._log.stream(stream, after=after, limit=limit)
        return [one for one in self._life.events if one.version > after][:limit]
