"""Publishing what somebody else should have published, or what the queue has forgotten.

A leader that dies between its commit and its publish leaves claims without a message: its successor
finds them behind the publishing position. A queue that lost its stream, or its last writes (it
acknowledges before it syncs), has forgotten messages: all claims of the partitions led are gone
through. Both read the index in bounded pages, and stop while the outbox is full.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from horolog.application.scanner.outbox import Outbox
from horolog.application.scanner.progress import Batch, Progress
from horolog.application.scanner.reading import ReadsRows
from horolog.application.scanner.sent import SentMessages
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.sweep import BEGINNING, FIRST, Range
from horolog.application.scanner.territory import Term, Territory
from horolog.application.states import DueOccurrence

PAGE = 500
FULL_PAUSE_S = 0.2
ALWAYS = 1 << 61
"""Later than any due time."""


@dataclass(frozen=True, slots=True)
class Look:
    """A row of the index that waits for a look: a claim, or an attempt that runs."""

    due_us: int
    id: UUID
    partition: int
    state: str
    position: int


class ReadsLooks(Protocol):
    """Errors: ``StoreUnavailable``."""

    async def looks(self, ranges: Sequence[Range], limit: int) -> list[list[Look]]:
        """The first ``limit`` looks of each range, in the order of (due time, id), in one query."""
        ...


@dataclass(slots=True)
class _Round:
    """A walk through a partition's claims. ``after``: only those that were written behind this
    position; ``batch`` holds the publishing position back until the walk is done."""

    partition: int
    after: int
    batch: Batch | None
    due_us: int = BEGINNING
    id: UUID = FIRST


class Republishing:
    """Walks through claims; one :meth:`step` is one page of one partition."""

    def __init__(
        self,
        territory: Territory,
        outbox: Outbox,
        progress: Progress,
        sent: SentMessages,
        *,
        index: ReadsLooks,
        rows: ReadsRows,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._outbox = outbox
        self._progress = progress
        self._sent = sent
        self._index = index
        self._rows = rows
        self._signals = signals
        self._rounds: list[_Round] = []
        self._wanted: list[UUID] = []
        territory.gained.append(self._take_over)
        territory.lost.append(self._leave)

    @property
    def pending(self) -> bool:
        """Whether there is something to go through."""
        return bool(self._rounds or self._wanted)

    def everything(self) -> None:
        """The queue may have lost anything: all claims of all partitions are gone through."""
        self._rounds = [round_ for round_ in self._rounds if round_.batch is not None]
        self._rounds += [_Round(partition, 0, None) for partition in self._territory.terms]

    def these(self, occurrences: Iterable[UUID]) -> None:
        """The messages of these claims are known to be lost."""
        self._wanted.extend(occurrences)

    async def step(self) -> float | None:
        """Goes through one page; ``None`` when there is nothing to go through."""
        if not self.pending:
            return None
        if self._outbox.room == 0:
            return FULL_PAUSE_S
        if self._wanted:
            page = self._wanted[:PAGE]
            await self._publish(page, None)
            del self._wanted[: len(page)]
            return 0.0
        round_ = self._rounds[0]
        span = Range(round_.partition, round_.due_us, round_.id, ALWAYS)
        looks = (await self._index.looks([span], PAGE))[0]
        claims = [
            look.id for look in looks if look.state == "claimed" and look.position > round_.after
        ]
        await self._publish(claims, round_.batch)
        if len(looks) == PAGE:
            round_.due_us, round_.id = looks[-1].due_us, looks[-1].id
        elif round_ in self._rounds:
            self._rounds.remove(round_)
            self._finish(round_)
        return 0.0

    async def _publish(self, ids: list[UUID], batch: Batch | None) -> None:
        if not ids:
            return
        for row in await self._rows.due(ids):
            if not isinstance(row, DueOccurrence) or row.occurrence.state != "claimed":
                continue
            state = row.occurrence
            if (state.id, state.attempt) in self._outbox or row.job.status == "cancelled":
                continue
            known = self._sent.find(state.id, state.attempt)
            if known is not None:
                continue
            if batch is not None:
                batch.open += 1
                batch.position = max(batch.position, row.position)
            # Under its own id, which a queue that holds it recognises. One that forgot the message
            # and not the id says duplicate, and is found out.
            self._outbox.add(
                row.job,
                state,
                batch=batch,
                lost=row.lost,
                replayed=row.replayed,
                since=row.since,
            )
            self._signals.emit("republished")

    def _take_over(self, term: Term) -> None:
        # It stands before all claims of this term, so none of their positions passes it.
        batch = self._progress.begin(term.partition, term.published, 1)
        self._rounds.append(_Round(term.partition, term.published, batch))

    def _leave(self, term: Term) -> None:
        self._rounds = [round_ for round_ in self._rounds if round_.partition != term.partition]
        self._progress.forget(term.partition)

    def _finish(self, round_: _Round) -> None:
        if round_.batch is not None:
            self._progress.confirm(round_.batch)
