"""Watching: deadlines that are missed, also where no worker is left to miss them.

Who leads the first partition looks for all of the namespace. A miss is an event in a stream of its
own, so it is said once, whoever looks, and nobody who is deciding on the job or on the run meets
another version of it. Noticed within ``watch_interval_s``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.scanner.claiming import Appends
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Territory
from horolog.domain.ids import deadline_stream, occurrence_id
from horolog.domain.log_events import DeadlineKind, DeadlineMissed
from horolog.domain.origin import Origin

PAGE = 500
"""The most misses in one step."""

FIRST = 0
"""Who leads this partition watches."""

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Miss:
    """A deadline that has passed at ``due``: of a run, claimed or not; without a fire time, of its
    job."""

    deadline: DeadlineKind
    job_id: UUID
    name: str
    owner: str | None
    due: datetime
    occurrence_id: UUID | None
    fire_time: datetime | None

    @property
    def occurrence(self) -> UUID | None:
        """The run's identity, which one that is not claimed has already."""
        if self.occurrence_id is not None or self.fire_time is None:
            return self.occurrence_id
        return occurrence_id(self.job_id, self.fire_time)


class ReadsMisses(Protocol):
    """Errors: ``StoreUnavailable``."""

    async def missed(self, after: datetime, limit: int) -> list[Miss]:
        """Deadlines that passed later than ``after`` and were missed, in the order of their time;
        by the database's clock."""
        ...


class Watching:
    """Looks for missed deadlines; one :meth:`step` is one page."""

    def __init__(
        self,
        territory: Territory,
        *,
        misses: ReadsMisses,
        appends: Appends,
        clock: Clock,
        settings: ScannerSettings,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._misses = misses
        self._appends = appends
        self._clock = clock
        self._settings = settings
        self._signals = signals
        self._origin = Origin(actor=f"scanner {territory.instance}")
        self._after = _BEGINNING

    async def step(self) -> float:
        """Says what was missed since the last step; seconds to the next."""
        if FIRST not in self._territory.trusted(self._clock.monotonic()):
            # Whoever leads again looks at everything that is unfinished once more.
            self._after = _BEGINNING
            return self._settings.watch_interval_s
        missed = await self._misses.missed(self._after, PAGE)
        if missed:
            await self._say(missed)
            self._after = missed[-1].due
        return 0.0 if len(missed) == PAGE else self._settings.watch_interval_s

    async def _say(self, missed: Sequence[Miss]) -> None:
        appended = await self._appends.append([self._decision(miss) for miss in missed])
        self._signals.emit("deadline_missed", appended.verdicts.count("accepted"))

    def _decision(self, miss: Miss) -> Decision:
        identity = miss.occurrence
        stream = deadline_stream(identity or miss.job_id, miss.deadline, miss.due)
        event = DeadlineMissed(
            deadline=miss.deadline,
            job_id=miss.job_id,
            name=miss.name,
            due=miss.due,
            occurrence_id=identity,
            owner=miss.owner,
            **self._origin.fields(),
        )
        return Decision(Guard("nothing", stream, 0), -1, [NewEvent(stream, 1, event)])
