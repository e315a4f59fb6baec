"""New zone data: which jobs wait for a fire time that it moves, and the correction of that.

Only a job's next fire time is stored; those after it are computed when their time comes, with the
zone data of then. So after an update of ``tzdata`` one pass over the living jobs finds all that has
to be corrected. A correction is an event of its own; what was recorded before keeps its meaning.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Final
from uuid import UUID

from horolog.application.answers.zone_correction import ZoneCorrection
from horolog.application.commands.changing import change
from horolog.application.commands.context import Context
from horolog.application.log import ReadsLog
from horolog.application.queries.ports import (
    JobFilter,
    ListsJobs,
    ListsOccurrences,
    OccurrenceFilter,
)
from horolog.domain.job import JobState, JobStatus
from horolog.domain.job_events import JobEvent
from horolog.domain.zone_correction import corrected_fire, decide_zone_correction

PAGE: Final = 1_000
LOOKED_BACK: Final = 50
"""How many of a job's latest occurrences are looked through for one of its schedule's own."""

_LIVING: tuple[JobStatus, ...] = ("active", "paused")
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Correcting:
    """What finding corrections reads."""

    jobs: ListsJobs
    occurrences: ListsOccurrences
    log: ReadsLog

    def found(self, *, after: UUID | None, limit: int, following: int) -> list[ZoneCorrection]:
        """A page of the jobs to correct, in the order of ids, each with so many fire times."""
        found: list[ZoneCorrection] = []
        for job in self._living(after):
            correction = self._correction(job, following)
            if correction is not None:
                found.append(correction)
                if len(found) == limit:
                    break
        return found

    def last_used(self, job: JobState) -> tuple[datetime, UUID] | None:
        """The latest of the schedule's fire times that was claimed, and its occurrence."""
        wanted = OccurrenceFilter(job_id=job.id)
        page = self.occurrences.occurrences(
            wanted, after=None, limit=LOOKED_BACK, newest_first=True
        )
        used = next((one for one in page if one.kind == "schedule"), None)
        return None if used is None else (used.fire_time, used.id)

    def _living(self, after: UUID | None) -> Iterator[JobState]:
        """Active and paused jobs whose fire times depend on a zone, merged in the order of ids."""
        pages = [self._of_status(status, after) for status in _LIVING]
        for job in merge(*pages, key=lambda job: job.id):
            if job.next_fire is not None and job.definition.parsed_schedule().clock_zone != "UTC":
                yield job

    def _of_status(self, status: JobStatus, after: UUID | None) -> Iterator[JobState]:
        while page := self.jobs.jobs(JobFilter(status=status), after=after, limit=PAGE):
            yield from page
            after = page[-1].id

    def _correction(self, job: JobState, following: int) -> ZoneCorrection | None:
        assert job.next_fire is not None
        schedule = job.definition.parsed_schedule()
        if corrected_fire(schedule, job.next_fire) == job.next_fire:
            return None
        last = self.last_used(job)
        fire = corrected_fire(schedule, job.next_fire, None if last is None else last[0])
        left = None if schedule.limit is None else max(schedule.limit - job.fires, 0)
        count = following if left is None else min(following, left)
        fires = [] if fire is None else list(islice(schedule.fires(fire - _TICK), count))
        return ZoneCorrection(
            job.id,
            job.key,
            job.definition.name,
            schedule.clock_zone,
            job.next_fire,
            self._recorded_with(job, None if last is None else last[1]),
            tuple(fires),
        )

    def _recorded_with(self, job: JobState, last: UUID | None) -> str | None:
        """The zone data that the log names beside the recorded fire time."""
        streams = [job.id] if last is None else [job.id, last]
        for stream in streams:
            for recorded in reversed(self.log.stream(stream, limit=PAGE)):
                said = recorded.event.model_dump(include={"next_fire", "tzdata"})
                if said.get("next_fire") == job.next_fire and said.get("tzdata"):
                    return said["tzdata"]
        return None


def correct(
    context: Context, correcting: Correcting, job_id: UUID, *, reason: str | None = None
) -> JobState:
    """Corrects a job's next fire time; one that is right stays, and leaves no event.

    Raises ``UnknownJob``.
    """
    origin = context.origin(reason or "the zone data has changed")

    def decide(job: JobState) -> list[JobEvent]:
        last = correcting.last_used(job)
        return decide_zone_correction(job, last=None if last is None else last[0], origin=origin)

    return change(context, job_id, decide)
