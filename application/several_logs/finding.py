"""Finding the log of a job or an occurrence by asking them, for no id says which it is.

A job is first looked for where the hash of its id says, which is right unless it has a concurrency
key; an occurrence is in the log of its job, and all are asked. What was found stays true for ever
and is remembered. Where nothing was found and a log is away, nobody can say that there is nothing.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from horolog.application.commands.context import Context
from horolog.application.log import ReadsLog
from horolog.application.queries.ports import ListsDeadLetters, ListsJobs, ListsOccurrences
from horolog.application.several_logs.place import log_of_job
from horolog.domain.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState

REMEMBERED: Final = 100_000
"""Places that are kept; some 20 MB."""


class OneLog(Protocol):
    """A client of one log."""

    @property
    def context(self) -> Context: ...

    @property
    def log(self) -> ReadsLog: ...

    @property
    def jobs(self) -> ListsJobs: ...

    @property
    def occurrences(self) -> ListsOccurrences: ...

    @property
    def letters(self) -> ListsDeadLetters: ...


C = TypeVar("C", bound=OneLog)
T = TypeVar("T")


class Logs(Generic[C]):
    """The logs of a namespace, each opened when it is first needed; shared by threads.

    ``openers`` raise ``StoreUnavailable`` and its kin, and are then asked again the next time.
    """

    def __init__(self, openers: Sequence[Callable[[], C]]) -> None:
        self._openers = openers
        self._opened: dict[int, C] = {}
        self._locks = [Lock() for _ in openers]
        self._places: dict[UUID, int] = {}

    def __len__(self) -> int:
        return len(self._openers)

    def at(self, number: int) -> C:
        """The client of a log."""
        with self._locks[number]:
            if number not in self._opened:
                self._opened[number] = self._openers[number]()
            return self._opened[number]

    def all(self) -> list[C]:
        """All of them; ``StoreUnavailable`` where one is away."""
        return [self.at(number) for number in range(len(self))]

    def any(self) -> C:
        """One that answers; what is true of all can be asked there."""
        found = self.first(lambda one: one)
        assert found is not None, "a namespace has at least one log"
        return found

    def opened(self) -> list[C]:
        """Those that were needed so far."""
        return list(self._opened.values())

    def first(
        self, ask: Callable[[C], T | None], *, begin: int = 0, about: UUID | None = None
    ) -> T | None:
        """The first answer, from log ``begin`` on; that ``about`` is there is remembered."""
        away: StoreUnavailable | None = None
        for step in range(len(self)):
            number = (begin + step) % len(self)
            try:
                answer = ask(self.at(number))
            except (SchemaMissing, SchemaTooNew):
                raise
            except StoreUnavailable as error:
                away = error
                continue
            if answer is not None:
                if about is not None:
                    self.remember(about, number)
                return answer
        if away is not None:
            raise away
        return None

    def remember(self, identity: UUID, number: int) -> None:
        if len(self._places) >= REMEMBERED:
            self._places.clear()
        self._places[identity] = number

    def home(self, job_id: UUID) -> int:
        """Where a job is that has no concurrency key."""
        return log_of_job(job_id, None, self.any().context.partitions, len(self))

    def job(self, job_id: UUID) -> JobState | None:
        """The job, from whichever log has it."""
        known = self._places.get(job_id)
        if known is not None:
            return self.at(known).context.states.job(job_id)
        return self.first(
            lambda one: one.context.states.job(job_id), begin=self.home(job_id), about=job_id
        )

    def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        known = self._places.get(occurrence_id)
        if known is not None:
            return self.at(known).context.states.occurrence(occurrence_id)
        return self.first(
            lambda one: one.context.states.occurrence(occurrence_id), about=occurrence_id
        )

    def number_of_job(self, job_id: UUID) -> int:
        """The number of the job's log; its home where no log has it, which will say so."""
        if job_id not in self._places:
            self.job(job_id)
        known = self._places.get(job_id)
        return self.home(job_id) if known is None else known

    def number_of_occurrence(self, occurrence_id: UUID) -> int:
        """The number of the occurrence's log; 0 where no log has it."""
        if occurrence_id not in self._places:
            self.occurrence(occurrence_id)
        return self._places.get(occurrence_id, 0)

    def of_job(self, job_id: UUID) -> C:
        return self.at(self.number_of_job(job_id))

    def of_occurrence(self, occurrence_id: UUID) -> C:
        return self.at(self.number_of_occurrence(occurrence_id))
