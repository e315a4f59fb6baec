"""The log in memory up to a position, read whole: what an instant was like, without any index."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from horolog.application.log import Recorded
from horolog.application.queries.past_ports import (
    ClaimsSought,
    MaybeOpen,
    Move,
    PastJob,
    StoredEvent,
)
from horolog.domain.event import read_event
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job import JobState, fold
from horolog.domain.job_events import Cancelled, Completed, FiresSkipped, JobEvent, Paused
from horolog.domain.occurrence_events import Claimed, OccurrenceEvent
from horolog.domain.orders import ordered_by
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.tables import StoredEvent as Kept

_ENDED = (Paused, Cancelled, Completed)


class SimulatedPast:
    """As :class:`horolog.application.queries.past_ports.ReadsPast` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables

    def position_at(self, moment: datetime) -> int:
        found = 0
        for event in self._tables.events:
            if event.recorded_at > moment:
                break
            found = event.position
        return found

    def job_ids(self, *, name: str | None, after: UUID | None, limit: int) -> list[UUID]:
        rows = self._tables.jobs.values()
        ids = sorted(row.id for row in rows if name in (None, row.name))
        return [identity for identity in ids if after is None or identity > after][:limit]

    def jobs_at(self, ids: Sequence[UUID], position: int, *, active: bool = False) -> list[PastJob]:
        found: list[PastJob] = []
        for job_id in sorted(ids):
            events = self._until(job_id, position)
            if events and not (active and isinstance(events[-1].event, _ENDED)):
                own = [
                    StoredEvent(one.position, one.version, one.event.topic, one.event.to_json())
                    for one in events
                    if not isinstance(one.event, FiresSkipped)
                ]
                dropped = [one for one in events if isinstance(one.event, FiresSkipped)]
                last = _move(dropped[-1]) if dropped else None
                found.append(PastJob(job_id, events[-1].version, own, last))
        return found

    def last_claims(
        self, sought: Sequence[ClaimsSought], moment: datetime, position: int
    ) -> dict[UUID, Move]:
        del moment  # no index by time is needed here
        after = {one.job_id: one.after for one in sought}
        found: dict[UUID, Move] = {}
        for recorded in self._all(position):
            event = recorded.event
            if (
                isinstance(event, Claimed)
                and event.fires is not None
                and event.job_id in after
                and recorded.position > after[event.job_id]
            ):
                known = found.get(event.job_id)
                if known is None or known.fires < event.fires:
                    found[event.job_id] = _move(recorded)
        return found

    def maybe_open(self, moment: datetime, position: int) -> list[MaybeOpen]:
        del moment
        found: dict[UUID, tuple[UUID, OccurrenceKind]] = {}
        for recorded in self._all(position):
            event = recorded.event
            if isinstance(event, Claimed):
                found.setdefault(recorded.stream, (event.job_id, event.kind))
            elif isinstance(event, JobEvent):
                for state in ordered_by(self._job(recorded), event, recorded.recorded_at):
                    found.setdefault(state.id, (state.job_id, state.kind))
        return [
            MaybeOpen(identity, job_id, kind, self._until(identity, position))
            for identity, (job_id, kind) in found.items()
        ]

    def orders(self, occurrences: Mapping[UUID, UUID], position: int) -> list[Recorded]:
        return [
            recorded
            for recorded in self._all(position)
            if isinstance(recorded.event, JobEvent)
            and any(
                state.id in occurrences
                for state in ordered_by(self._job(recorded), recorded.event, recorded.recorded_at)
            )
        ]

    def _job(self, recorded: Recorded) -> JobState:
        events = self._until(recorded.stream, recorded.position)
        state = fold(recorded.stream, [event.event for event in events])
        assert state is not None
        return state

    def _all(self, position: int) -> list[Recorded]:
        stored = (event for event in self._tables.events if event.position <= position)
        return [
            recorded
            for recorded in map(_recorded, stored)
            if isinstance(recorded.event, JobEvent | OccurrenceEvent)
        ]

    def _until(self, stream: UUID, position: int) -> list[Recorded]:
        events = self._tables.streams.get(stream, [])
        return [_recorded(event) for event in events if event.position <= position]


def _move(recorded: Recorded) -> Move:
    event = recorded.event
    assert isinstance(event, Claimed | FiresSkipped)
    return Move(recorded.position, event.fires or 0, event.next_fire)


def _recorded(event: Kept) -> Recorded:
    where = f"at position {event.position} ({event.stream}:{event.version})"
    fact = read_event(event.topic, event.state, where=where)
    return Recorded(event.position, event.recorded_at, event.stream, event.version, fact)
