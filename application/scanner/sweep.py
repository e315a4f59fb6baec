"""The sweep: bounded reads of the next-run index into the agenda, resumed by key.

Each pass reads, partition by partition, what is due by the time of the next pass but one, from the
beginning: so a row that no notification told of is found before its time, or at most one sweep
after it was written. Behind that, once, the rest of the horizon, so that a burst at one instant is
in memory when it comes. A page that comes back full is gone on from behind its last row, as soon as
what it brought has been claimed: a backlog of any size passes through in pages, and rows that
cannot be claimed yet (an overlap that has to wait, a queue that nobody works at) do not stand in
the way of those behind them.

Of a queue that is full only so much is kept in memory. What a pass leaves behind is fetched when
the queue has been worked off so far: from the first row left behind up to the next one.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.clock import Clock, DatabaseTime
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Term, Territory
from horolog.application.scanner.wheel import Entry

FIRST = UUID(int=0)
LAST = UUID(int=(1 << 128) - 1)
BEGINNING = -(1 << 61)
"""Earlier than any due time, in microseconds since 1970."""

SMALLEST_PAGE = 16

MOST_AT_ONCE = 500
"""Rows that are taken in without letting anybody else do anything."""

BUSY = 0.05
"""The most of its time that is spent with passes from the beginning, as a fraction; see REST."""

REST = 0.5
"""The longest pause between two passes, as a fraction of the horizon. A pass that took long (a slow
log, or much is due that cannot be claimed) must not put off the next one for hours."""


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of one partition after the key (``due_us``, ``id``) and due until ``until_us``."""

    partition: int
    due_us: int
    id: UUID
    until_us: int


class ReadsIndex(Protocol):
    """Errors: ``StoreUnavailable``."""

    async def fires(self, ranges: Sequence[Range], limit: int) -> list[list[Entry]]:
        """The first ``limit`` fires of each range, in the order of (due time, id), in one query."""
        ...


Key = tuple[int, UUID]
"""A place in the order of the index; reading goes on behind it."""

Kind = Literal["near", "behind", "far"]


@dataclass(slots=True)
class _Reading:
    """How far a partition was read. ``near``: the key at which a pass goes on, ``None`` between
    passes. ``far``: the key up to which the rest of the horizon was read. ``behind``: the key from
    which more is fetched for the queues ``short``, ``None`` where they have enough. ``rereads``
    counts what was told meanwhile: a page that was asked for before that does not move the keys on.
    """

    near: Key | None
    far: Key
    behind: Key | None = None
    short: set[str] = field(default_factory=set[str])
    rereads: int = 0


class Sweep:
    """Keeps the agenda filled; one :meth:`step` at a time."""

    def __init__(
        self,
        territory: Territory,
        agenda: Agenda,
        *,
        index: ReadsIndex,
        clock: Clock,
        time: DatabaseTime,
        settings: ScannerSettings,
        signals: Signals,
    ) -> None:
        self._agenda = agenda
        self._index = index
        self._clock = clock
        self._time = time
        self._settings = settings
        self._signals = signals
        self._readings: dict[int, _Reading] = {}
        self._next_pass = clock.monotonic()
        self._spent_s = 0.0
        self.taken = 0
        """How many entries the last step brought."""
        territory.gained.append(self._begin)
        territory.lost.append(self._end)

    async def step(self) -> float:
        """Reads one page of what is wanted; seconds until the next step, 0 where there is more."""
        self.taken = 0
        if not self._readings:
            return self._settings.sweep_s
        self._forgotten()
        now = self._clock.monotonic()
        if now >= self._next_pass:
            # Much may be due that cannot be claimed yet; reading it again and again must not be all
            # that is done.
            rest_s = min(self._spent_s / BUSY, self._settings.horizon_s * REST)
            self._next_pass = now + max(self._settings.sweep_s, rest_s)
            self._spent_s = 0.0
            self._start_pass()
        self._fetch_more()
        if wanted := self._wanted():
            await self._read(wanted)
            if self._wanted():
                return 0.0
        # Between two passes the far ranges move on with the time.
        return min(self._settings.sweep_s, max(0.0, self._next_pass - self._clock.monotonic()))

    @property
    def unfinished(self) -> bool:
        """Whether a pass goes on as soon as what it brought so far has been claimed."""
        return any(
            reading.near is not None or reading.behind is not None
            for reading in self._readings.values()
        )

    def reread(self, partition: int, due_us: int) -> None:
        """Rows of the partition were written, from ``due_us`` on, of which we only know that."""
        reading = self._readings.get(partition)
        if reading is None:
            return
        near_until, since = self._near_until(), (due_us, FIRST)
        if due_us < near_until and (reading.near is None or since < reading.near):
            reading.near = since
        reading.far = min(reading.far, max(since, (near_until, FIRST)))
        reading.rereads += 1

    def hear(self, entry: Entry) -> None:
        """A row that was just written, if it is of a partition that is led here."""
        if entry.partition in self._readings:
            self._agenda.add(entry)

    def reload(self) -> None:
        """News may have been lost: everything is read again, the next page of it at once."""
        for partition in self._readings:
            self.reread(partition, BEGINNING)

    def _begin(self, term: Term) -> None:
        self._readings[term.partition] = _Reading((BEGINNING, FIRST), (self._near_until(), FIRST))

    def _end(self, term: Term) -> None:
        self._readings.pop(term.partition, None)
        self._agenda.forget(term.partition)

    def _start_pass(self) -> None:
        for reading in self._readings.values():
            if reading.near is None:
                reading.near = (BEGINNING, FIRST)

    def _forgotten(self) -> None:
        """What the wheel had no room for is read again when it has."""
        since = self._agenda.wheel.incomplete_from
        if since is not None and self._room():
            self._agenda.wheel.incomplete_from = None
            for reading in self._readings.values():
                if since < reading.far[0]:
                    reading.far = (since, FIRST)

    def _wanted(self) -> list[tuple[Kind, Range]]:
        """The ranges to read now: near ones of partitions that run out of due entries, far ones
        while there is room."""
        near_until = self._near_until()
        horizon = self._time.now_us() + int(self._settings.horizon_s * 1e6)
        enough = max(SMALLEST_PAGE, self._settings.claim_batch // max(1, len(self._readings)))
        # Far ranges are extended a sweep's length at a time, not with every step.
        stride = int(self._settings.sweep_s * 1e6)
        room = self._room()
        wanted: list[tuple[Kind, Range]] = []
        for partition, reading in self._readings.items():
            if reading.behind is not None:
                wanted.append(("behind", Range(partition, *reading.behind, near_until)))
            elif reading.near is not None and self._agenda.ready_in(partition) < enough:
                wanted.append(("near", Range(partition, *reading.near, near_until)))
            if room and reading.far[0] + stride <= horizon:
                wanted.append(("far", Range(partition, *reading.far, horizon)))
        return wanted

    async def _read(self, wanted: list[tuple[Kind, Range]]) -> None:
        limit = max(SMALLEST_PAGE, self._settings.read_batch // len(wanted))
        asked = {partition: reading.rereads for partition, reading in self._readings.items()}
        began = self._clock.monotonic()
        pages = await self._index.fires([span for _, span in wanted], limit)
        self._signals.emit("swept")
        at_once = 0
        for (kind, span), page in zip(wanted, pages, strict=True):
            at_once += len(page)
            if at_once > MOST_AT_ONCE:
                at_once = 0
                await asyncio.sleep(0)  # what is due meanwhile is claimed between two pages
            reading = self._readings.get(span.partition)
            if reading is None:
                continue
            taken = self._take(page)
            self.taken += taken
            if reading.rereads != asked.get(span.partition):
                continue
            more = taken == len(page) == limit
            if kind == "near":
                # Where there was no room the pass ends; the next one brings the rest.
                reading.near = _key(page[-1]) if more else None
            elif kind == "behind":
                reading.behind = _key(page[-1]) if more and self._lacks(span, page[-1]) else None
            elif taken < len(page):
                reading.far = _key(page[taken - 1]) if taken else reading.far
            else:
                reading.far = _key(page[-1]) if more else (span.until_us, LAST)
        self._spent_s += self._clock.monotonic() - began

    def _fetch_more(self) -> None:
        """What was left behind of queues that have been worked off."""
        for queue, partition in self._agenda.run_short():
            first = self._agenda.left_behind.fetch(queue, partition)
            reading = self._readings.get(partition)
            if reading is None:
                continue
            since = (first.due_us, UUID(int=first.id.int - 1) if first.id.int else first.id)
            if reading.behind is None:
                reading.behind, reading.short = since, {queue}
            else:
                reading.behind = min(reading.behind, since)
                reading.short.add(queue)

    def _lacks(self, span: Range, last: Entry) -> bool:
        """Whether nothing up to this row was left behind of the queues that it was read for."""
        short = self._readings[span.partition].short
        first = self._agenda.left_behind.first(span.partition, short)
        return first is None or first > last

    def _take(self, page: Iterable[Entry]) -> int:
        """How many entries of the page there was room for."""
        taken = 0
        for entry in page:
            if not self._agenda.add(entry):
                break
            taken += 1
        self._agenda.release(self._time.now_us())
        return taken

    def _near_until(self) -> int:
        return self._time.now_us() + int(self._settings.near_s * 1e6)

    def _room(self) -> bool:
        return len(self._agenda.wheel) < self._settings.wheel_capacity * 3 // 4


def _key(entry: Entry) -> Key:
    return entry.due_us, entry.id
