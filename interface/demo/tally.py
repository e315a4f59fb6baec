"""The log's own account: events folded by the domain's functions into what became of each job.

Nothing else is asked: what the tally says is what anybody could work out from the log later.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from horolog.application.answers.logged_event import LoggedEvent
from horolog.domain.job import JobState
from horolog.domain.job import evolve as evolve_job
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.occurrence import evolve as evolve_occurrence
from horolog.domain.occurrence_events import Attempted, Claimed, OccurrenceEvent


@dataclass(frozen=True)
class JobAccount:
    """A job at one moment of its log."""

    label: str
    job: JobState
    occurrences: int
    attempts: int
    succeeded: int
    retried: int
    dead: int
    skipped: int
    unfinished: int

    @property
    def outcome(self) -> str:
        """In a few words, what became of the job's runs."""
        counts = {
            "succeeded": self.succeeded,
            "dead-lettered": self.dead,
            "skipped": self.skipped,
            "unfinished": self.unfinished,
        }
        words = [f"{count} {what}" for what, count in counts.items() if count]
        return ", ".join(words) or "never ran"


@dataclass
class Tally:
    """Folds events in the order of the log."""

    events: int = 0
    jobs: dict[UUID, JobState] = field(default_factory=dict[UUID, JobState])
    occurrences: dict[UUID, OccurrenceState] = field(default_factory=dict[UUID, OccurrenceState])
    attempts: dict[UUID, int] = field(default_factory=dict[UUID, int])
    """Tries that began, by occurrence."""

    def add_all(self, events: Iterable[LoggedEvent]) -> None:
        for event in events:
            self.add(event)

    def add(self, logged: LoggedEvent) -> None:
        self.events += 1
        event, stream = logged.event, logged.stream
        if isinstance(event, JobEvent):
            self.jobs[stream] = evolve_job(self.jobs.get(stream), stream, event)
        elif isinstance(event, OccurrenceEvent):
            before = self.occurrences.get(stream)
            if before is None and not isinstance(event, Claimed):
                return  # ordered and called off before anybody claimed it
            self.occurrences[stream] = evolve_occurrence(before, stream, event)
            if isinstance(event, Attempted):
                self.attempts[stream] = self.attempts.get(stream, 0) + 1

    @property
    def unfinished(self) -> int:
        return sum(not occurrence.finished for occurrence in self.occurrences.values())

    def label(self, job_id: UUID) -> str | None:
        job = self.jobs.get(job_id)
        return None if job is None else job.key or job.definition.name

    def accounts(self) -> list[JobAccount]:
        """An account of each job, in the order of their registration."""
        of_job: dict[UUID, list[OccurrenceState]] = {job_id: [] for job_id in self.jobs}
        for occurrence in self.occurrences.values():
            of_job.setdefault(occurrence.job_id, []).append(occurrence)
        return [self._account(job, of_job[job_id]) for job_id, job in self.jobs.items()]

    def _account(self, job: JobState, runs: list[OccurrenceState]) -> JobAccount:
        states = [run.state for run in runs]
        tries = [self.attempts.get(run.id, 0) for run in runs]
        return JobAccount(
            label=self.label(job.id) or str(job.id),
            job=job,
            occurrences=len(runs),
            attempts=sum(tries),
            succeeded=states.count("succeeded"),
            retried=sum(count > 1 for count in tries),
            dead=states.count("dead"),
            skipped=states.count("skipped"),
            unfinished=sum(not run.finished for run in runs),
        )
