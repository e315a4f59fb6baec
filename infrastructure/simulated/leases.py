"""Leases, presence and publishing positions in memory, by the log's clock."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from horolog.application.scanner.clock import microseconds
from horolog.application.scanner.leadership import Lease, View
from horolog.domain.partition import PartitionState
from horolog.infrastructure.simulated.links import Link, direct
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedLeases:
    """As :class:`KeepsLeases` and :class:`MarksPublished` promise."""

    def __init__(self, log: SimulatedLog, link: Link = direct) -> None:
        self._log = log
        self._tables = log.tables
        self._link = link

    async def renew(
        self,
        instance: str,
        tokens: Mapping[int, int],
        *,
        lease_s: float,
        details: Mapping[str, object],
    ) -> View:
        del details
        held = dict(tokens)
        return await self._link(lambda: self._renew(instance, held, timedelta(seconds=lease_s)))

    async def leave(self, instance: str) -> None:
        def leave() -> None:
            self._tables.scanners.pop(instance, None)
            self._log.tell("due", "scanners")

        await self._link(leave)

    async def now_us(self) -> int:
        return await self._link(lambda: microseconds(self._log.now()))

    async def mark_published(
        self, instance: str, tokens: Mapping[int, int], positions: Mapping[int, int]
    ) -> None:
        held, reached = dict(tokens), dict(positions)

        def mark() -> None:
            for partition, position in reached.items():
                row = self._tables.partitions[partition]
                if (row.instance, row.token) == (instance, held[partition]):
                    row.published = max(row.published, position)

        await self._link(mark)

    def _renew(self, instance: str, tokens: Mapping[int, int], lease: timedelta) -> View:
        now = self._log.now()
        tables = self._tables
        if instance not in tables.scanners:
            self._log.tell("due", "scanners")
        tables.scanners[instance] = now + lease
        for partition, token in tokens.items():
            row = tables.partitions.get(partition)
            if row is not None and (row.instance, row.token) == (instance, token):
                row.lease_until = now + lease
        return View(
            microseconds(now), self._alive(now), self._leases(now), self._others(instance, now)
        )

    def _others(self, instance: str, now: datetime) -> float | None:
        ends = [
            (row.lease_until - now).total_seconds()
            for row in self._tables.partitions.values()
            if row.instance not in (None, instance) and row.lease_until >= now
        ]
        return min(ends, default=None)

    def _alive(self, now: datetime) -> list[str]:
        return sorted(name for name, until in self._tables.scanners.items() if until >= now)

    def _leases(self, now: datetime) -> list[Lease]:
        return [
            Lease(
                PartitionState(row.stream, number, row.version, row.instance, row.token),
                row.instance is not None and row.lease_until >= now,
                row.published,
            )
            for number, row in sorted(self._tables.partitions.items())
        ]
