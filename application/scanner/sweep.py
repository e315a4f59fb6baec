"""The sweep: bounded reads of the next-run index into the agenda, resumed by key.

Each pass reads, partition by partition, what is due by the time of the next pass but one, from the
beginning: so a row that no notification told of is found before its time, or at most one sweep
after it was written. Behind that, once, the rest of the horizon, so that a burst at one instant is
in memory when it comes. A page that comes back full is gone on from behind its last row, as soon as
what it brought has been claimed: a backlog of any size passes through in pages, and rows that
cannot be claimed yet (an overlap that has to wait) do not stand in the way of those behind them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
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

BUSY = 0.2
"""The most of its time that is spent with passes from the beginning, as a fraction."""


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


@dataclass(slots=True)
class _Reading:
    """How far a partition was read. ``near``: the key at which a pass goes on, ``None`` between
    passes. ``far``: the key up to which the rest of the horizon was read. ``rereads`` counts what
    was told meanwhile: a page that was asked for before that does not move the keys on."""

    near: tuple[int, UUID] | None
    far: tuple[int, UUID]
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
            self._next_pass = now + max(self._settings.sweep_s, self._spent_s / BUSY)
            self._spent_s = 0.0
            self._start_pass()
        near, far = self._wanted()
        if near or far:
            await self._read(near, far)
            near, far = self._wanted()
        if near or far:
            return 0.0
        return max(0.0, self._next_pass - self._clock.monotonic())

    @property
    def unfinished(self) -> bool:
        """Whether a pass goes on as soon as what it brought so far has been claimed."""
        return any(reading.near is not None for reading in self._readings.values())

    def reread(self, partition: int, due_us: int) -> None:
        """Rows of the partition were written, from ``due_us`` on, of which we only know that."""
        reading = self._readings.get(partition)
        if reading is None:
            return
        if due_us < self._near_until():
            reading.near = (BEGINNING, FIRST)
        if due_us < reading.far[0]:
            reading.far = (due_us, FIRST)
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

    def _wanted(self) -> tuple[list[Range], list[Range]]:
        """The ranges to read now: near ones of partitions that run out of due entries, far ones
        while there is room."""
        near_until = self._near_until()
        horizon = self._time.now_us() + int(self._settings.horizon_s * 1e6)
        enough = max(SMALLEST_PAGE, self._settings.claim_batch // max(1, len(self._readings)))
        near = [
            Range(partition, *reading.near, near_until)
            for partition, reading in self._readings.items()
            if reading.near is not None and self._agenda.ready_in(partition) < enough
        ]
        # Far ranges are extended a sweep's length at a time, not with every step.
        stride = int(self._settings.sweep_s * 1e6)
        far = [
            Range(partition, *reading.far, horizon)
            for partition, reading in self._readings.items()
            if reading.far[0] + stride <= horizon and self._room()
        ]
        return near, far

    async def _read(self, near: list[Range], far: list[Range]) -> None:
        limit = max(SMALLEST_PAGE, self._settings.read_batch // (len(near) + len(far)))
        asked = {partition: reading.rereads for partition, reading in self._readings.items()}
        began = self._clock.monotonic()
        pages = await self._index.fires([*near, *far], limit)
        self._signals.emit("swept")
        for number, (span, page) in enumerate(zip([*near, *far], pages, strict=True)):
            reading = self._readings.get(span.partition)
            if reading is None:
                continue
            taken = self._take(page)
            self.taken += taken
            if reading.rereads != asked[span.partition]:
                continue
            more = taken == len(page) == limit
            if number < len(near):
                # Where there was no room the pass ends; the next one brings the rest.
                reading.near = _key(page[-1]) if more else None
            elif taken < len(page):
                reading.far = _key(page[taken - 1]) if taken else reading.far
            else:
                reading.far = _key(page[-1]) if more else (span.until_us, LAST)
        self._agenda.release(self._time.now_us())
        self._spent_s += self._clock.monotonic() - began

    def _take(self, page: list[Entry]) -> int:
        """How many entries of the page there was room for."""
        for number, entry in enumerate(page):
            if not self._agenda.add(entry):
                return number
        return len(page)

    def _near_until(self) -> int:
        return self._time.now_us() + int(self._settings.near_s * 1e6)

    def _room(self) -> bool:
        return len(self._agenda) < self._settings.wheel_capacity * 3 // 4


def _key(entry: Entry) -> tuple[int, UUID]:
    return entry.due_us, entry.id
