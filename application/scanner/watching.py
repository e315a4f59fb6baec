"""Watching: deadlines that are missed, also where no worker is left to miss them.

Who leads the first partition looks for all of the namespace. A miss is an event in a stream of its
own, so it is said once, whoever looks, and nobody who is deciding on the job or on the run meets
another version of it. Noticed within ``watch_interval_s``.

Not every miss comes to light in the order of its time. Of a job's fire times that wait (for room,
or for a scanner) only the first is known to be due; a job may be resumed, or get a deadline, long
after that has passed. So all that is missed is gone through again and again, in rounds of a page at
each look; up to a page, each look is a whole round. Where there is more, a look also reads what is
newer than all that was seen, which then need not wait for the round.
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
"""So many misses are read at a time. Where more last, those that come to light late wait for their
turn in the round: a look costs the same."""

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


def whole(misses: Sequence[Miss], limit: int) -> Sequence[Miss]:
    """Of misses in the order of their time, the first ``limit`` and all of the last one's time."""
    if len(misses) <= limit:
        return misses
    return [miss for miss in misses if miss.due <= misses[limit - 1].due]


class ReadsMisses(Protocol):
    """Errors: ``StoreUnavailable``."""

    async def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        """Deadlines that passed later than ``after`` and were missed, in the order of their time;
        by the database's clock. The :func:`whole` of the first ``limit``: what passed at one
        instant is never torn apart."""
        ...


class Watching:
    """Looks for missed deadlines; one :meth:`step` is one look."""

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
        self._begin()

    def _begin(self) -> None:
        self._reached = _BEGINNING
        """How far the round has come."""
        self._newest = _BEGINNING
        """The latest that was ever seen; everything later is new."""
        self._went_round = False
        self._met: set[UUID] = set()
        """The streams of what was seen in this round, and of the last one."""
        self._met_before: set[UUID] = set()

    async def step(self) -> float:
        """Says what was missed and was not said; seconds to the next step."""
        if FIRST not in self._territory.trusted(self._clock.monotonic()):
            # Whoever leads again says everything that is unfinished once more.
            self._begin()
            return self._settings.watch_interval_s
        missed = await self._look(self._reached)
        if len(missed) < PAGE:
            self._went_round, self._reached = True, _BEGINNING
            self._met_before, self._met = self._met, set()
            return self._settings.watch_interval_s
        self._reached = missed[-1].due
        if self._went_round and len(await self._look(self._newest)) < PAGE:
            return self._settings.watch_interval_s
        return 0.0

    async def _look(self, after: datetime) -> Sequence[Miss]:
        """What passed later than ``after``; says what of it was not said yet."""
        missed = await self._misses.missed(after, PAGE)
        unsaid = {
            stream: miss
            for miss in missed
            if (stream := _stream_of(miss)) not in self._met_before and stream not in self._met
        }
        streams = list(unsaid)
        for first in range(0, len(streams), PAGE):
            page = streams[first : first + PAGE]
            appended = await self._appends.append([self._decision(s, unsaid[s]) for s in page])
            self._signals.emit("deadline_missed", appended.verdicts.count("accepted"))
        self._met.update(map(_stream_of, missed))
        if missed:
            self._newest = max(self._newest, missed[-1].due)
        return missed

    def _decision(self, stream: UUID, miss: Miss) -> Decision:
        event = DeadlineMissed(
            deadline=miss.deadline,
            job_id=miss.job_id,
            name=miss.name,
            due=miss.due,
            occurrence_id=miss.occurrence,
            owner=miss.owner,
            **self._origin.fields(),
        )
        return Decision(Guard("nothing", stream, 0), -1, [NewEvent(stream, 1, event)])


def _stream_of(miss: Miss) -> UUID:
    return deadline_stream(miss.occurrence or miss.job_id, miss.deadline, miss.due)
