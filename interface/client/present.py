"""Jobs and runs as they are, or were at an instant."""

from collections.abc import Mapping
from datetime import datetime

from horolog.application.answers.job import Job
from horolog.application.answers.occurrence import Occurrence
from horolog.application.queries import asking
from horolog.application.queries.limit import DEFAULT_LIMIT, checked_limit
from horolog.application.queries.past_jobs import job_at, jobs_at
from horolog.application.queries.ports import JobFilter, OccurrenceFilter
from horolog.domain.job import JobStatus
from horolog.domain.occurrence import Phase
from horolog.domain.schedule import FireTime, Schedule, ScheduleDifference
from horolog.interface.client.connected import Connected
from horolog.interface.client.questions import past_moment
from horolog.interface.filters import (
    chosen_label,
    chosen_state,
    chosen_status,
    chosen_text,
    chosen_time,
)
from horolog.interface.identifiers import Identifier, as_uuid, job_uuid, occurrence_uuid


class Present(Connected):
    """Asks for jobs, their fire times and their occurrences."""

    def job(self, id_or_key: Identifier, *, as_of: datetime | None = None) -> Job:
        """The job with this id or key as it is now, or was at ``as_of`` (aware).

        Raises ``UnknownJob``, also where it was not registered yet.
        """
        client = self._connected()
        state = asking.find_job(client.context, id_or_key, as_uuid(id_or_key))
        if as_of is None:
            return self.read_out(Job.of(state))
        moment = past_moment("as_of", as_of)
        past = client.of_job(state.id).past
        then = asking.then(job_at(past, state.id, moment), id_or_key, moment)
        return self.read_out(Job.of(then))

    def jobs(
        self,
        *,
        status: JobStatus | None = None,
        name: str | None = None,
        label: str | tuple[str, str] | Mapping[str, str] | None = None,
        subject: str | None = None,
        as_of: datetime | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[Job]:
        """A page of jobs in the order of ids; ``after`` is the last id of the page before.

        ``label`` is "name=value", a name alone, or one pair. ``limit`` is from 1 to 10,000. With
        ``as_of`` (aware) the jobs are, and are chosen, as they were then, folded from the log.
        """
        wanted = JobFilter(
            chosen_status(status),
            chosen_text("name", name),
            chosen_label(label),
            chosen_text("subject", subject),
        )
        behind = None if after is None else job_uuid(after)
        if as_of is None:
            page = self._connected().jobs.jobs(wanted, after=behind, limit=checked_limit(limit))
        else:
            past = self._connected().of_one_log("what jobs there were").past
            moment = past_moment("as_of", as_of)
            page = jobs_at(past, wanted, moment, after=behind, limit=checked_limit(limit))
        return self.read_out([Job.of(state) for state in page])

    def upcoming(self, job_id: Identifier, n: int = 10) -> list[FireTime]:
        """The next ``n`` (1 to 10,000) fire times of a job, fewer where its schedule ends before.

        Each has the instant (UTC), the local time, and what a clock change did to it. A paused job
        has none, nor one that has ended. Raises ``UnknownJob``.
        """
        return asking.upcoming(asking.find_job(self._context, job_id, as_uuid(job_id)), n)

    def compare(self, job_id: Identifier, schedule: Schedule, *, n: int = 20) -> ScheduleDifference:
        """What :meth:`reschedule` would change: fire times kept, added and removed, from now on.

        Compares the next ``n`` (1 to 10,000) of each schedule, as far as both were looked at.
        Raises ``UnknownJob``, ``InvalidSchedule``.
        """
        job = asking.find_job(self._context, job_id, as_uuid(job_id))
        return asking.compared(job, schedule, n, now=self._context.clock.now())

    def occurrence(self, occurrence_id: Identifier) -> Occurrence:
        """The occurrence as it is now; raises ``UnknownOccurrence``."""
        occurrences, identity = self._connected().occurrences, occurrence_uuid(occurrence_id)
        return self.read_out(asking.find_occurrence(occurrences, identity))

    def occurrences(
        self,
        *,
        job_id: Identifier | None = None,
        state: Phase | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
        newest_first: bool = False,
    ) -> list[Occurrence]:
        """A page of occurrences in the order of their fire times, finished or not.

        Fire times from ``since`` on and before ``until`` (aware). ``after`` is the id of the last
        one of the page before; ``limit`` is from 1 to 10,000.
        """
        wanted = OccurrenceFilter(
            None if job_id is None else job_uuid(job_id),
            chosen_state(state),
            chosen_time("since", since),
            chosen_time("until", until),
        )
        page = self._connected().occurrences.occurrences(
            wanted,
            after=None if after is None else occurrence_uuid(after),
            limit=checked_limit(limit),
            newest_first=newest_first,
        )
        return self.read_out(page)
