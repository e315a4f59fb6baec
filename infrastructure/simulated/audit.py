"""The audit of the log in memory: all of it is read, and what is chosen is kept."""

from collections.abc import Iterator
from datetime import datetime
from typing import cast
from uuid import UUID

from horolog.application.answers.execution import Execution
from horolog.application.answers.skip import Skip
from horolog.application.log import Recorded
from horolog.application.queries.audit_ports import (
    ExecutionChoice,
    SkipChoice,
    Timing,
)
from horolog.application.queries.executed import execution_of, fits, is_wanted, ran
from horolog.application.queries.telling import SKIPPED_BECAUSE
from horolog.domain.errors import UnknownOccurrence
from horolog.domain.ids import fire_time_floor
from horolog.domain.job_events import FiresSkipped
from horolog.domain.occurrence import FINISHED
from horolog.domain.occurrence_events import (
    Skipped,
    Stopped,
)
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.streams import SimulatedStreams
from horolog.projections.rows import Execution as Ended
from horolog.projections.rows import NextRun


class SimulatedAudit(SimulatedStreams):
    """As :class:`horolog.application.queries.audit_ports.Audits` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        super().__init__(log)
        self._tables = log.tables

    def executions(
        self, wanted: ExecutionChoice, *, after: UUID | None, limit: int
    ) -> list[Execution]:
        found = [
            one
            for one in self._all()
            if self._is_wanted(one, wanted) and (wanted.state or ran(one))
        ]
        if wanted.by_end:
            found.sort(key=lambda one: self._events(one.id)[-1].position)
        else:
            found.sort(key=lambda one: one.id)
        if after is not None and not wanted.by_end:
            found = [one for one in found if one.id > after]
        elif after is not None:
            places = [one.id for one in found]
            if after not in places:
                raise UnknownOccurrence(f"after={after}: no finished occurrence has this id")
            found = found[places.index(after) + 1 :]
        return found[:limit]

    def timings(self, wanted: ExecutionChoice) -> Iterator[Timing]:
        for one in sorted(self._all(), key=lambda one: one.id):
            if one.state in FINISHED and self._is_wanted(one, wanted):
                yield Timing(
                    one.job_id,
                    one.name,
                    one.fire_time,
                    one.state,
                    one.began_at is not None,
                    one.failures,
                    one.seconds,
                    one.late_s,
                )

    def skips(self, wanted: SkipChoice, *, after: UUID | None, limit: int) -> list[Skip]:
        found = [skip for skip in self._skips() if _is_wanted(skip, wanted)]
        chosen = [
            skip
            for skip in found
            if (after is None or skip.id > after)
            and fits(self._tables.jobs[skip.job_id], wanted.jobs)
        ]
        return sorted(chosen, key=lambda skip: skip.id)[:limit]

    def _skips(self) -> Iterator[Skip]:
        for stored in self._tables.events:
            if stored.topic == FiresSkipped.topic:
                (recorded,) = self._log.stream(stored.stream, after=stored.version - 1, limit=1)
                event = cast("FiresSkipped", recorded.event)
                key = UUID(int=fire_time_floor(event.last).int | recorded.position)
                yield self._skip(key, stored.stream, recorded, event, (event.first, event.last))
            elif stored.topic in (Skipped.topic, Stopped.topic):
                (recorded,) = self._log.stream(stored.stream, after=stored.version - 1, limit=1)
                event = cast("Skipped | Stopped", recorded.event)
                ended = self._tables.executions[stored.stream]
                times = (ended.fire_time, ended.fire_time)
                yield self._skip(stored.stream, ended.job_id, recorded, event, times)

    def _skip(
        self,
        key: UUID,
        job_id: UUID,
        recorded: Recorded,
        event: FiresSkipped | Skipped | Stopped,
        times: tuple[datetime, datetime],
    ) -> Skip:
        of_range = isinstance(event, FiresSkipped)
        return Skip(
            id=key,
            job_id=job_id,
            name=self._tables.jobs[job_id].name,
            cause=event.cause,
            because=SKIPPED_BECAUSE[event.cause],
            first=times[0],
            last=times[1],
            count=event.count if of_range else 1,
            occurrence_id=None if of_range else recorded.stream,
            recorded_at=recorded.recorded_at,
            actor=event.actor,
            reason=event.reason,
            position=recorded.position,
        )

    def _all(self) -> Iterator[Execution]:
        for row in self._tables.next_runs.values():
            if row.run.kind != "job":
                yield self._execution(row.run, None)
        for ended in self._tables.executions.values():
            yield self._execution(ended, self._events(ended.id)[-1].recorded_at)

    def _execution(self, row: NextRun | Ended, finished_at: datetime | None) -> Execution:
        job = self._tables.jobs[row.job_id]
        return execution_of(row, job, self._events(row.id), finished_at)

    def _is_wanted(self, one: Execution, wanted: ExecutionChoice) -> bool:
        return is_wanted(one, self._tables.jobs[one.job_id], self._events(one.id), wanted)

    def _events(self, stream: UUID) -> list[Recorded]:
        return self._log.stream(stream, limit=1_000_000)


def _is_wanted(skip: Skip, wanted: SkipChoice) -> bool:
    return (
        (wanted.since is None or skip.last >= wanted.since)
        and (wanted.until is None or skip.first < wanted.until)
        and wanted.cause in (None, skip.cause)
    )
