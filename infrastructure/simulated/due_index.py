"""The fires of the index in memory, in the order of time: a heap beside the rows."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush
from uuid import UUID

from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedDueIndex:
    """As :class:`horolog.application.simulation.leading.ReadsFires` promises.

    What was written is taken over when it is asked for; what was changed since is left behind.
    """

    def __init__(self, log: SimulatedLog) -> None:
        self._tables = log.tables
        self._heap: list[tuple[datetime, UUID]] = []

    def fires(self, until: datetime) -> list[UUID]:
        self._take_over()
        found: dict[UUID, datetime] = {}
        while self._heap and self._heap[0][0] <= until:
            due_at, identity = heappop(self._heap)
            if self._stands(due_at, identity):
                found.setdefault(identity, due_at)
        for identity, due_at in found.items():
            heappush(self._heap, (due_at, identity))
        return list(found)

    def next_fire(self, after: datetime) -> datetime | None:
        self._take_over()
        while self._heap and not self._stands(*self._heap[0]):
            heappop(self._heap)
        if not self._heap or self._heap[0][0] > after:
            return self._heap[0][0] if self._heap else None
        later = (due_at for due_at, _ in self._live() if due_at > after)
        return min(later, default=None)

    def known(self, ids: Sequence[UUID]) -> set[UUID]:
        return {identity for identity in ids if identity in self._tables.streams}

    def _live(self) -> Iterator[tuple[datetime, UUID]]:
        return (entry for entry in self._heap if self._stands(*entry))

    def _stands(self, due_at: datetime, identity: UUID) -> bool:
        row = self._tables.next_runs.get(identity)
        return row is not None and row.fires_at == due_at

    def _take_over(self) -> None:
        written, self._tables.written = self._tables.written, set()
        for identity in written:
            row = self._tables.next_runs.get(identity)
            if row is not None and (fires_at := row.fires_at) is not None:
                heappush(self._heap, (fires_at, identity))
