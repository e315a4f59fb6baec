"""Serving lanes: when a slot is free, the rows that are next in its lane are claimed.

    refused as full ─▶ waits in its lane (index) ─▶ a slot is free ─▶ the agenda ─▶ a claim

One look reads, for each lane that is due, as many rows as it has slots free, oldest first. They go
the ordinary way through the agenda, and the log counts again: a look that was wrong costs a
refusal, never a slot too many. Rows that come due while others wait are not tried before those.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.deciding import Proposal
from horolog.application.scanner.lanes import Waiting, WaitingLanes
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Term, Territory
from horolog.application.scanner.wheel import Entry

MOST_LANES = 100
"""The most lanes in one look."""

SURVEY_S = 10.0
"""How often the index is asked which lanes are waited for."""

SURVEY_PAGE = 1_000


@dataclass(slots=True)
class Next:
    """The rows that are next in a lane; ``more`` says whether others wait in it beside them."""

    more: bool = False
    rows: list[Entry] = field(default_factory=list[Entry])


class ReadsLanes(Protocol):
    """Errors: ``StoreUnavailable``."""

    async def next_in_lanes(
        self, lanes: Sequence[Waiting], partitions: Sequence[int]
    ) -> list[Next]:
        """For each lane its next rows in the order of due times, of ``partitions`` alone: as many
        as it has slots free, at most :attr:`Waiting.most`."""
        ...

    async def waiting_lanes(self, after: str, limit: int) -> list[tuple[str, int]]:
        """The first lanes behind the name ``after`` in which rows wait, and the partition of the
        row that is next."""
        ...


class Serving:
    """Looks after lanes; one :meth:`step` is one look."""

    def __init__(
        self,
        territory: Territory,
        agenda: Agenda,
        lanes: WaitingLanes,
        *,
        index: ReadsLanes,
        clock: Clock,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._agenda = agenda
        self._lanes = lanes
        self._index = index
        self._clock = clock
        self._signals = signals
        self._let_through: set[UUID] = set()
        self._surveyed_to = ""
        self._next_survey = 0.0
        self.brought = 0
        """How many rows the last step brought."""
        self.refusals = 0
        """How many claims found a lane full since the last step."""
        territory.gained.append(self._survey_soon)

    async def step(self) -> float:
        """One look; seconds to the next."""
        self.brought = self.refusals = 0
        partitions = sorted(self._territory.terms)
        if not partitions:
            return SURVEY_S
        if self._clock.monotonic() >= self._next_survey:
            await self._survey()
        due = self._lanes.due(self._clock.monotonic(), MOST_LANES)
        if due:
            answers = await self._index.next_in_lanes(due, partitions)
            for lane, answer in zip(due, answers, strict=True):
                self._take(lane, answer)
            self._signals.emit("served")
        now = self._clock.monotonic()
        look_at = self._lanes.next_look()
        wakes = [self._next_survey] if look_at is None else [self._next_survey, look_at]
        return max(0.0, min(wakes) - now)

    def queue_up(self, proposals: list[Proposal]) -> None:
        """Has what comes later than others in its lane wait behind them."""
        for proposal in proposals:
            decision = proposal.decision
            if not decision.lanes:
                continue
            next_in_turn = proposal.id in self._let_through
            self._let_through.discard(proposal.id)
            for number, lane in enumerate(decision.lanes):
                self._lanes.limited(lane)
                if lane.name in self._lanes and not next_in_turn:
                    decision.lanes[number] = replace(lane, limit=0)

    def settle(self, entries: Sequence[Entry]) -> None:
        """Whatever became of them: the next time they take their turn again."""
        if self._let_through:
            self._let_through.difference_update(entry.id for entry in entries)

    def refused(self, proposal: Proposal) -> None:
        """The log found one of its lanes full."""
        now = self._clock.monotonic()
        for lane in proposal.decision.lanes:
            self._lanes.refused(lane, now)
        self.refusals += 1
        self._signals.emit("full")

    def told(self, name: str) -> bool:
        """A slot of the lane is free; whether a row waits for it that is claimed here."""
        return self._lanes.told(name, self._clock.monotonic())

    def _take(self, lane: Waiting, answer: Next) -> None:
        for entry in answer.rows:
            if self._agenda.add(entry):
                self._let_through.add(entry.id)
                self.brought += 1
        if not answer.more:
            self._lanes.empty(lane.name)

    def _survey_soon(self, _: Term) -> None:
        self._next_survey = 0.0

    async def _survey(self) -> None:
        """One page of the lanes that are waited for; from the beginning after the last page."""
        page = await self._index.waiting_lanes(self._surveyed_to, SURVEY_PAGE)
        now = self._clock.monotonic()
        for name, partition in page:
            if name.startswith("queue:") or partition in self._territory.terms:
                self._lanes.found(name, now)
        more = len(page) == SURVEY_PAGE
        self._surveyed_to = page[-1][0] if more else ""
        self._next_survey = now if more else now + SURVEY_S
