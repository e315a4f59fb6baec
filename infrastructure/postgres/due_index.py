"""The next-run index as the scanner reads it: bounded pages of many partitions in one query."""

from collections.abc import Sequence
from datetime import UTC, datetime
from sys import intern
from uuid import UUID

from horolog.application.scanner.clock import instant, microseconds
from horolog.application.scanner.lanes import Waiting
from horolog.application.scanner.looking import Extension
from horolog.application.scanner.republishing import Look
from horolog.application.scanner.serving import Next
from horolog.application.scanner.sweep import Range
from horolog.application.scanner.wheel import Entry
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.occurrence import OccurrenceState
from horolog.infrastructure.postgres.arrays import (
    Floats,
    Instants,
    Ints,
    PackedArray,
    SmallInts,
    Uuids,
)
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.infrastructure.postgres.threaded import DedicatedThread

# next_runs_fires and next_runs_look_times, one range scan for each range; no locks.
_FIRES = (
    "SELECT range_number, due_us, id, queue, tenant, priority"
    " FROM :schema.fires_due(%b, %b, %b, %b, %s)"
)
_LOOKS = (
    "SELECT range_number, due_us, id, state, position FROM :schema.looks_due(%b, %b, %b, %b, %s)"
)
# next_runs_lanes and lane_slots_lane; no locks.
_NEXT_IN_LANES = (
    "SELECT lane_number, free, due_us, id, partition"
    " FROM :schema.lane_waits(%s::text[], %s::int[], %s::float8[], %s::int[], %b)"
)
_WAITING_LANES = "SELECT name, partition FROM :schema.waiting_lanes(%s, %s)"
# The primary key of next_runs; row locks, none waited for.
_EXTEND = "SELECT :schema.extend_windows(%b, %b, %b)"
# The primary key of occurrence_events.
_KNOWN = "SELECT stream FROM :schema.occurrence_events WHERE stream = ANY (%b) AND version = 1"

_EARLIEST = microseconds(datetime(1, 1, 1, tzinfo=UTC))
_LATEST = microseconds(datetime(9999, 12, 31, tzinfo=UTC))


class PostgresDueIndex:
    """As :class:`ReadsIndex`, :class:`ReadsDueRows`, :class:`ReadsLanes` and :class:`Extends`
    promise."""

    def __init__(self, database: Database, states: PostgresStates, thread: DedicatedThread) -> None:
        self._database = database
        self._states = states
        self._thread = thread
        self._fires = database.sql(_FIRES)
        self._looks = database.sql(_LOOKS)
        self._extend = database.sql(_EXTEND)
        self._known = database.sql(_KNOWN)
        self._next_in_lanes = database.sql(_NEXT_IN_LANES)
        self._waiting_lanes = database.sql(_WAITING_LANES)

    async def fires(self, ranges: Sequence[Range], limit: int) -> list[list[Entry]]:
        # Also the unpacking: thousands of rows would keep the loop from what is due.
        return await self._thread.call(self._read_fires, ranges, limit)

    def _read_fires(self, ranges: Sequence[Range], limit: int) -> list[list[Entry]]:
        pages: list[list[Entry]] = [[] for _ in ranges]
        rows: list[tuple[int, int, UUID, str, str, int]]
        rows = self._database.query(self._fires, (*_packed(ranges), limit))
        for number, due_us, identity, queue, tenant, priority in rows:
            partition = ranges[number - 1].partition
            # Many entries have the same of few queues and tenants: each is kept once.
            entry = Entry(due_us, identity, partition, intern(queue), intern(tenant), priority)
            pages[number - 1].append(entry)
        return pages

    async def next_in_lanes(
        self, lanes: Sequence[Waiting], partitions: Sequence[int]
    ) -> list[Next]:
        params = (
            [lane.name for lane in lanes],
            [lane.limit for lane in lanes],
            [lane.rate for lane in lanes],
            [lane.most for lane in lanes],
            SmallInts(list(partitions)),
        )
        answers = [Next() for _ in lanes]
        frees = [0] * len(lanes)
        rows: list[tuple[int, int, int | None, UUID | None, int | None]]
        rows = await self._thread.call(self._database.query, self._next_in_lanes, params)
        for number, free, due_us, identity, partition in rows:
            frees[number - 1] = free
            answers[number - 1].more = True
            if due_us is not None and identity is not None and partition is not None:
                answers[number - 1].rows.append(Entry(due_us, identity, partition))
        for answer, free in zip(answers, frees, strict=True):
            answer.more = answer.more and not 0 < len(answer.rows) < free
        return answers

    async def waiting_lanes(self, after: str, limit: int) -> list[tuple[str, int]]:
        params = (after, limit)
        return await self._thread.call(self._database.query, self._waiting_lanes, params)

    async def looks(self, ranges: Sequence[Range], limit: int) -> list[list[Look]]:
        pages: list[list[Look]] = [[] for _ in ranges]
        params = (*_packed(ranges), limit)
        rows: list[tuple[int, int, UUID, str, int]]
        rows = await self._thread.call(self._database.query, self._looks, params)
        for number, due_us, identity, state, position in rows:
            partition = ranges[number - 1].partition
            pages[number - 1].append(Look(due_us, identity, partition, state, position))
        return pages

    async def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        return await self._thread.call(self._states.due, ids) if ids else []

    async def known(self, ids: Sequence[UUID]) -> set[UUID]:
        rows = await self._thread.call(self._database.query, self._known, (Uuids(ids),))
        return {row[0] for row in rows}

    async def unfinished(self, job_id: UUID, limit: int) -> list[OccurrenceState]:
        return await self._thread.call(lambda: self._states.unfinished(job_id, limit=limit))

    async def extend(self, extensions: Sequence[Extension]) -> None:
        if not extensions:
            return
        params = (
            Uuids([extension.id for extension in extensions]),
            Ints([extension.version for extension in extensions]),
            Floats([extension.after_s for extension in extensions]),
        )
        await self._thread.call(self._database.query, self._extend, params)


def _packed(ranges: Sequence[Range]) -> list[PackedArray]:
    return [
        SmallInts([span.partition for span in ranges]),
        Instants([_instant(span.due_us) for span in ranges]),
        Uuids([span.id for span in ranges]),
        Instants([_instant(span.until_us) for span in ranges]),
    ]


def _instant(due_us: int) -> datetime:
    """The datetime, or the first or last that there is: the ends of an open range."""
    return instant(min(max(due_us, _EARLIEST), _LATEST))
