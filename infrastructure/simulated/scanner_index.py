"""The next-run index in memory as the scanner reads it: bounded pages of ranges, and lanes."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from horolog.application.scanner.claiming import entry_of
from horolog.application.scanner.clock import microseconds
from horolog.application.scanner.lanes import Waiting
from horolog.application.scanner.looking import Extension
from horolog.application.scanner.republishing import Look
from horolog.application.scanner.serving import Next
from horolog.application.scanner.sweep import Range
from horolog.application.scanner.wheel import Entry
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.lanes import Lane, QueueLimit
from horolog.domain.occurrence import OccurrenceState
from horolog.infrastructure.simulated.lanes import free_slots
from horolog.infrastructure.simulated.links import Link, direct
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.states import SimulatedStates
from horolog.infrastructure.simulated.tables import IndexRow

_OF_QUEUE = "queue:"
_OTHERS = 200
"""Rows of a lane that are left to other leaders, beside those that are looked for."""


class SimulatedScannerIndex:
    """As :class:`ReadsIndex`, :class:`ReadsDueRows`, :class:`ReadsLanes` and :class:`Extends`
    promise; of a log that keeps what waits in its lanes."""

    def __init__(self, log: SimulatedLog, states: SimulatedStates, link: Link = direct) -> None:
        self._log = log
        self._tables = log.tables
        self._states = states
        self._link = link

    async def fires(self, ranges: Sequence[Range], limit: int) -> list[list[Entry]]:
        wanted = list(ranges)
        return await self._link(
            lambda: [
                [self._entry(due_us, row) for due_us, row in page]
                for page in self._pages(wanted, limit, _is_fire)
            ]
        )

    async def looks(self, ranges: Sequence[Range], limit: int) -> list[list[Look]]:
        wanted = list(ranges)
        return await self._link(
            lambda: [
                [
                    Look(due_us, row.run.id, row.run.partition, row.run.state, row.position)
                    for due_us, row in page
                ]
                for page in self._pages(wanted, limit, _is_look)
            ]
        )

    async def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        wanted = list(ids)
        return await self._link(lambda: self._states.due(wanted)) if wanted else []

    async def known(self, ids: Sequence[UUID]) -> set[UUID]:
        wanted = list(ids)
        return await self._link(lambda: {i for i in wanted if i in self._tables.streams})

    async def unfinished(self, job_id: UUID, limit: int) -> list[OccurrenceState]:
        return await self._link(lambda: self._states.unfinished(job_id, limit=limit))

    async def extend(self, extensions: Sequence[Extension]) -> None:
        wanted = list(extensions)
        if wanted:
            await self._link(lambda: self._extend(wanted))

    async def next_in_lanes(
        self, lanes: Sequence[Waiting], partitions: Sequence[int]
    ) -> list[Next]:
        asked = [(lane.name, QueueLimit(lane.limit, lane.rate), lane.most) for lane in lanes]
        led = set(partitions)
        return await self._link(lambda: [self._next(*lane, led) for lane in asked])

    async def waiting_lanes(self, after: str, limit: int) -> list[tuple[str, int]]:
        def waiting() -> list[tuple[str, int]]:
            names = {row.lane for row in self._tables.next_runs.values() if row.lane}
            behind = sorted(name for name in names if name > after)[:limit]
            return [(name, self._in_lane(name)[0].run.partition) for name in behind]

        return await self._link(waiting)

    def _pages(
        self, ranges: Sequence[Range], limit: int, wanted: Callable[[IndexRow], bool]
    ) -> list[list[tuple[int, IndexRow]]]:
        of_partition: dict[int, list[tuple[int, IndexRow]]] = {}
        led = {span.partition for span in ranges}
        for row in self._tables.next_runs.values():
            if row.run.partition in led and wanted(row):
                of_partition.setdefault(row.run.partition, []).append((_due_us(row), row))
        for rows in of_partition.values():
            rows.sort(key=lambda pair: (pair[0], pair[1].run.id))
        return [
            [
                (due_us, row)
                for due_us, row in of_partition.get(span.partition, ())
                if (due_us, row.run.id) > (span.due_us, span.id) and due_us <= span.until_us
            ][:limit]
            for span in ranges
        ]

    def _entry(self, due_us: int, row: IndexRow) -> Entry:
        job = self._states.job(row.run.job_id)
        if job is None:
            return Entry(due_us, row.run.id, row.run.partition)
        return entry_of(job, row.run.id, due_us)

    def _extend(self, extensions: Sequence[Extension]) -> None:
        now = self._log.now()
        for extension in extensions:
            row = self._tables.next_runs.get(extension.id)
            if row is None or row.run.state != "claimed" or row.run.version != extension.version:
                continue
            self._put(row, now + timedelta(seconds=extension.after_s))

    def _put(self, row: IndexRow, due_at: datetime) -> None:
        self._tables.next_runs[row.run.id] = IndexRow(row.run, due_at, row.position, row.lane)
        self._tables.written.add(row.run.id)

    def _next(self, name: str, known: QueueLimit, most: int, led: set[int]) -> Next:
        rows = self._in_lane(name)
        if not rows:
            return Next()
        limits = known
        if name.startswith(_OF_QUEUE):
            # What was set for a queue is known here, whatever the leader remembers of it.
            limits = self._tables.queue_limits.get(name.removeprefix(_OF_QUEUE), QueueLimit())
        lane = Lane(name, limits.limit, limits.rate)
        free = max(0, min(most, free_slots(self._tables, lane, self._log.now())))
        mine = [row for row in rows[: free + _OTHERS] if row.run.partition in led][:free]
        entries = [Entry(_due_us(row), row.run.id, row.run.partition) for row in mine]
        return Next(more=not 0 < len(entries) < free, rows=entries)

    def _in_lane(self, name: str) -> list[IndexRow]:
        rows = [row for row in self._tables.next_runs.values() if row.lane == name]
        return sorted(rows, key=lambda row: (row.due_at, row.run.id))


def _due_us(row: IndexRow) -> int:
    return microseconds(row.due_at)


def _is_fire(row: IndexRow) -> bool:
    return not row.run.look and row.lane is None


def _is_look(row: IndexRow) -> bool:
    return row.run.look
