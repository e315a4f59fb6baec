"""The states of a namespace's jobs and occurrences, wherever they are."""

from collections.abc import Sequence
from uuid import UUID

from horolog.application.log import Recorded
from horolog.application.several_logs.finding import C, Logs
from horolog.domain.errors import NotAllowed
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState


class StatesOfLogs:
    """As :class:`horolog.application.states.ReadsStates` promises."""

    def __init__(self, logs: Logs[C]) -> None:
        self._logs = logs

    def job(self, job_id: UUID) -> JobState | None:
        return self._logs.job(job_id)

    def job_by_key(self, key: str) -> JobState | None:
        return self._logs.first(lambda one: one.context.states.job_by_key(key))

    def jobs(self, ids: Sequence[UUID]) -> dict[UUID, JobState]:
        found: dict[UUID, JobState] = {}
        if ids:
            for number, one in enumerate(self._logs.all()):
                here = one.context.states.jobs(ids)
                for job_id in here:
                    self._logs.remember(job_id, number)
                found |= here
        return found

    def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        return self._logs.occurrence(occurrence_id)

    def unfinished(
        self, job_id: UUID, *, after: UUID | None = None, limit: int = 1000
    ) -> list[OccurrenceState]:
        number = self._logs.number_of_job(job_id)
        states = self._logs.at(number).context.states
        found = states.unfinished(job_id, after=after, limit=limit)
        for occurrence in found:
            self._logs.remember(occurrence.id, number)
        return found


class StreamsOfLogs:
    """As :class:`horolog.application.log.ReadsLog` promises of streams; there is no order of all
    events where there are several logs."""

    def __init__(self, logs: Logs[C]) -> None:
        self._logs = logs

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        found = self._logs.first(
            lambda one: one.log.stream(stream, after=after, limit=limit) or None
        )
        return found or []

    def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        del after, topics, limit
        raise one_at_a_time("the log", len(self._logs))


def one_at_a_time(what: str, logs: int) -> NotAllowed:
    """What is raised for what several logs cannot answer as one."""
    return NotAllowed(
        f"{what} is to be had of one log at a time, and this namespace has {logs}: choose one with"
        f" --log N, HOROLOG_LOG or Scheduler(log=N), from 0 to {logs - 1}"
    )
