"""Backfilling: runs for the fire times of a past range, with the job as it was then.

The job's history is folded, so that each instant of the range has the schedule, the payload and the
policies that were in force. A fire time that has no occurrence gets the one that the schedule's own
firing would have had: whatever has run once under that key is found, and nothing runs twice. What
is to run again, because somebody asks for it, gets an occurrence of its own. Only fire times that
the schedule has left behind are ordered; those still to come are the schedule's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any, Final, Protocol
from uuid import UUID

from horolog.application.answers.planned_run import PlannedRun
from horolog.application.commands.backfill_request import Backfill
from horolog.application.commands.changing import known_job
from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.decision import Decision, decide_on_job
from horolog.domain.eras import Era, eras
from horolog.domain.errors import InvalidSchedule, NotAllowed, VersionConflict
from horolog.domain.job import JobState, refuse_if
from horolog.domain.job_events import BackfillRequested, JobEvent
from horolog.domain.occurrence import FINISHED, Phase
from horolog.domain.orders import backfilled_id, ordered_by
from horolog.domain.origin import Origin
from horolog.domain.schedule import tzdata_version
from horolog.projections.rows import occurrence_next_run

PER_EVENT: Final = 1_000
MAX_FIRES: Final = 100_000
"""The most fire times of one backfill; more would be a mistake more often than a wish."""

_SALT_BYTES = 12
_TICK = timedelta(microseconds=1)


class FindsOccurrences(Protocol):
    """Errors: ``StoreUnavailable``; ``UnreadableEvent``, which names the event."""

    def existing(self, ids: Sequence[UUID]) -> set[UUID]:
        """Those of ``ids`` (at most some thousands) that are occurrences, finished or not."""
        ...

    def outcomes(self, job_id: UUID, fires: Sequence[datetime]) -> Mapping[datetime, set[Phase]]:
        """For those of the job's fire times (at most some thousands) that were fired by the
        schedule or by backfills: the states of these occurrences."""
        ...

    def defining(self, job_id: UUID) -> Sequence[tuple[int, datetime, JobEvent]]:
        """The events that say what the job is: their versions, when they were recorded."""
        ...

    def left_the_log(self, since: datetime) -> Sequence[tuple[datetime, datetime]]:
        """The ranges of fire times whose finished occurrences have left the log, by a retention
        after ``since``: from the first, before the second."""
        ...


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A fire time of the range, and the version of the job that it runs."""

    fire: datetime
    version: int | None


def backfill(
    context: Context,
    occurrences: FindsOccurrences,
    job_id: UUID,
    asked: Backfill,
    *,
    reason: str | None = None,
) -> int:
    """Orders the runs; returns how many.

    A range that retention has taken out of the log says no longer what has run in it: that is
    ``NotAllowed``, unless all of it is to run again. Each append orders at most ``PER_EVENT``; what
    is ordered stays so if a later one fails, and the same call then orders the rest. Raises
    ``UnknownJob``, ``NotAllowed`` for a cancelled job, ``InvalidSchedule`` for a range that is
    empty, has no zone, or holds too many fire times, ``InvalidPolicy``, ``VersionConflict`` where
    the present schedule is asked for and changes meanwhile.
    """
    ordering = _Ordering(context, occurrences, job_id, asked, context.origin(reason))
    return sum(ordering.order(chunk) for chunk in ordering.chunks())


def planned(
    context: Context, occurrences: FindsOccurrences, job_id: UUID, asked: Backfill
) -> list[PlannedRun]:
    """What :func:`backfill` would order now, in its order; raises the same."""
    ordering = _Ordering(context, occurrences, job_id, asked, context.origin(None))
    runs: list[PlannedRun] = []
    for chunk in ordering.chunks():
        runs += ordering.planned(chunk)
    return runs


class _Ordering:
    """One backfill on its way: its runs are due one after the other, over all its appends."""

    def __init__(
        self,
        context: Context,
        occurrences: FindsOccurrences,
        job_id: UUID,
        asked: Backfill,
        origin: Origin,
    ) -> None:
        asked.check()
        self._context = context
        self._occurrences = occurrences
        self._job_id = job_id
        self._asked = asked
        self._origin = origin
        drawn = context.entropy.draw(_SALT_BYTES).hex()
        self._salt = drawn if asked.request_id is None else asked.request_id
        self._now = context.clock.now()
        self._ordered = 0
        self._present: dict[str, Any] | None = None
        self._gone: Sequence[tuple[datetime, datetime]] = []

    def chunks(self) -> Iterator[Sequence[_Wanted]]:
        """The fire times of the range, in the order in which they are to run."""
        job = known_job(self._context, self._job_id)
        refuse_if(job, {"cancelled"}, "backfill")
        wanted = list(islice(self._left_behind(job), MAX_FIRES + 1))
        if len(wanted) > MAX_FIRES:
            raise InvalidSchedule(
                f"the range from {self._asked.start.isoformat()} to {self._asked.end.isoformat()}"
                f" holds more than {MAX_FIRES} fire times of job {job.id}: ask for a shorter one,"
                " and for the next one afterwards"
            )
        self._refuse_what_left(job, wanted)
        if self._asked.reverse:
            wanted.reverse()
        for first in range(0, len(wanted), PER_EVENT):
            yield wanted[first : first + PER_EVENT]

    def plan(self, chunk: Sequence[_Wanted]) -> list[PlannedRun]:
        """The runs of these fire times that there are to be, first runs before runs again."""
        fires = [wanted.fire for wanted in chunk]
        states = self._occurrences.outcomes(self._job_id, fires)
        ids = [self._id(fire, again) for fire in fires for again in (False, True)]
        existing = self._occurrences.existing(ids)
        chosen: list[tuple[_Wanted, bool]] = []
        for wanted in chunk:
            has_run = (
                self._id(wanted.fire, False) in existing
                or wanted.fire in states
                or self._left(wanted.fire)
            )
            if not has_run or (
                self._runs_again(states.get(wanted.fire, set()))
                and self._id(wanted.fire, True) not in existing
            ):
                chosen.append((wanted, has_run))
        chosen.sort(key=lambda run: run[1])
        return [
            PlannedRun(
                wanted.fire,
                self._id(wanted.fire, again),
                self._due(self._ordered + number),
                wanted.version,
                again,
            )
            for number, (wanted, again) in enumerate(chosen)
        ]

    def planned(self, chunk: Sequence[_Wanted]) -> list[PlannedRun]:
        """As :meth:`plan`, and what follows takes its turn after these."""
        runs = self.plan(chunk)
        self._ordered += len(runs)
        return runs

    def order(self, chunk: Sequence[_Wanted]) -> int:
        """Appends the orders of a chunk; how many runs these are."""
        for _ in range(MAX_TRIES):
            job = known_job(self._context, self._job_id)
            refuse_if(job, {"cancelled"}, "backfill")
            self._refuse_another_schedule(job)
            runs = self.plan(chunk)
            if not runs:
                return 0
            if self._context.accepts(self._decision(job, runs)) is not None:
                self._ordered += len(runs)
                return len(runs)
        raise too_busy(f"job {self._job_id}")

    def _left_behind(self, job: JobState) -> Iterator[_Wanted]:
        """The fire times of the range that are not ahead of the schedule, oldest first."""
        before = self._now if job.next_fire is None else min(self._now, job.next_fire - _TICK)
        end = min(self._asked.end, before)
        history = eras(job.id, self._occurrences.defining(job.id))
        if self._asked.definition == "current":
            last = history[-1]
            self._present = last.definition.schedule
            now = Era(last.version, last.definition, last.first_fire, None, None)
            yield from (_Wanted(fire, None) for fire in now.fires(self._asked.start, end))
            return
        for era in history:
            fires = era.fires(self._asked.start, end)
            yield from (_Wanted(fire, era.version) for fire in fires)

    def _left(self, fire: datetime) -> bool:
        return any(since <= fire < until for since, until in self._gone)

    def _refuse_what_left(self, job: JobState, wanted: Sequence[_Wanted]) -> None:
        """What ran under a key that the log does not hold any more would run under it again."""
        registered_at = self._occurrences.defining(job.id)[0][1]
        self._gone = self._occurrences.left_the_log(registered_at)
        gone = [one.fire for one in wanted if self._left(one.fire)]
        if gone and self._asked.reprocess != "all":
            raise NotAllowed(
                f"the runs of job {job.id} from {gone[0].isoformat()} to {gone[-1].isoformat()}"
                " have left the log by retention, which does not know any more what ran: ask for a"
                " range without them, or for all to run again (reprocess 'all')"
            )

    def _refuse_another_schedule(self, job: JobState) -> None:
        """The fire times are those of the schedule that was the present one when they were read."""
        if self._present is not None and job.definition.schedule != self._present:
            raise VersionConflict(
                f"the schedule of job {job.id} was changed while runs of it were ordered:"
                " ask again, for the fire times of the new one",
                current=job.version,
            )

    def _runs_again(self, states: set[Phase]) -> bool:
        """Whether a fire time whose occurrences are in these states is to run once more."""
        if self._asked.reprocess == "none" or not states <= FINISHED:
            return False
        return self._asked.reprocess == "all" or "succeeded" not in states

    def _id(self, fire: datetime, again: bool) -> UUID:
        return backfilled_id(self._job_id, fire, self._salt if again else "")

    def _due(self, number: int) -> datetime:
        return self._now + number * timedelta(seconds=self._asked.spacing_s)

    def _decision(self, job: JobState, runs: Sequence[PlannedRun]) -> Decision:
        events: list[BackfillRequested] = []
        for (version, again), group in groupby(runs, lambda r: (r.definition_version, r.again)):
            of_group = list(group)
            events.append(
                BackfillRequested(
                    start=self._asked.start,
                    end=self._asked.end,
                    fires=[run.fire_time for run in of_group],
                    due=of_group[0].due,
                    spacing_s=self._asked.spacing_s,
                    definition_version=version,
                    salt=self._salt if again else "",
                    request_id=self._asked.request_id,
                    tzdata=tzdata_version(),
                    **self._origin.fields(),
                )
            )
        decision, _ = decide_on_job(job, job.id, events)
        for event in events:
            decision.next_runs += [
                occurrence_next_run(run) for run in ordered_by(job, event, self._now)
            ]
        return decision
