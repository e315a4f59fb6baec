"""Pages over several logs: a page of each, merged in the order that all of them keep.

Every listing is in the order of ids, which is one order over all logs; so the next page begins
behind the same id in each.
"""

from collections.abc import Iterable, Sequence
from heapq import merge
from itertools import islice
from typing import Protocol, TypeVar
from uuid import UUID

from horolog.application.answers.dead_letter import DeadLetter
from horolog.application.answers.occurrence import Occurrence
from horolog.application.queries.ports import JobFilter, OccurrenceFilter
from horolog.application.several_logs.finding import C, Logs
from horolog.domain.job import JobState


class _HasId(Protocol):
    @property
    def id(self) -> UUID: ...


H = TypeVar("H", bound=_HasId)


class JobsOfLogs:
    """As :class:`horolog.application.queries.ports.ListsJobs` promises."""

    def __init__(self, logs: Logs[C]) -> None:
        self._logs = logs

    def jobs(self, wanted: JobFilter, *, after: UUID | None, limit: int) -> list[JobState]:
        pages = [one.jobs.jobs(wanted, after=after, limit=limit) for one in self._logs.all()]
        return _merged(pages, limit)


class OccurrencesOfLogs:
    """As :class:`horolog.application.queries.ports.ListsOccurrences` promises."""

    def __init__(self, logs: Logs[C]) -> None:
        self._logs = logs

    def occurrence(self, occurrence_id: UUID) -> Occurrence | None:
        return self._logs.first(
            lambda one: one.occurrences.occurrence(occurrence_id), about=occurrence_id
        )

    def occurrences(
        self,
        wanted: OccurrenceFilter,
        *,
        after: UUID | None,
        limit: int,
        newest_first: bool = False,
    ) -> list[Occurrence]:
        # The runs of one job are in one log: the others need not answer, and may be away.
        asked = self._logs.all() if wanted.job_id is None else [self._logs.of_job(wanted.job_id)]
        pages = [
            one.occurrences.occurrences(wanted, after=after, limit=limit, newest_first=newest_first)
            for one in asked
        ]
        return _merged(pages, limit, newest_first=newest_first)


class LettersOfLogs:
    """As :class:`ListsDeadLetters` and :class:`FindsDeadLetters` promise."""

    def __init__(self, logs: Logs[C]) -> None:
        self._logs = logs

    def dead_letters(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> list[DeadLetter]:
        pages = [
            one.letters.dead_letters(owner=owner, name=name, after=after, limit=limit)
            for one in self._logs.all()
        ]
        return _merged(pages, limit)

    def dead(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> Sequence[UUID]:
        page = self.dead_letters(owner=owner, name=name, after=after, limit=limit)
        return [letter.id for letter in page]


def _merged(pages: Iterable[Iterable[H]], limit: int, *, newest_first: bool = False) -> list[H]:
    return list(islice(merge(*pages, key=lambda one: one.id, reverse=newest_first), limit))
