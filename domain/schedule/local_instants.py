"""The instants of a single local time: none, one or two."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from horolog.domain.schedule.clock_changes import clock_changes
from horolog.domain.schedule.fire_time import EPOCH, utc_second


class LocalInstants(NamedTuple):
    """Where a local time lies: ``first`` and ``second`` differ only if it is shown twice.

    In a gap both are the readings of RFC 5545 and PEP 495: ``first`` by the offset before the gap,
    ``second`` by the offset after it; ``gap_end`` is then the instant of the change, else ``None``.
    """

    first: datetime
    second: datetime
    gap_end: datetime | None

    @property
    def repeated(self) -> bool:
        """The local clock shows this time twice."""
        return self.gap_end is None and self.first != self.second

    @property
    def after_gap(self) -> datetime:
        """The first instant at which the local clock shows this time or a later one."""
        return self.first if self.gap_end is None else self.gap_end


def local_instants(local: datetime, zone: ZoneInfo) -> LocalInstants:
    """Looks up a local time without a zone in ``zone``."""
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    shown = first.astimezone(zone).replace(tzinfo=None, fold=0) == local.replace(fold=0)
    if shown:
        return LocalInstants(first, second, None)
    changes = clock_changes(zone.key, utc_second(first))
    start = changes.stretches[changes.index_at(utc_second(first))].start
    return LocalInstants(first, second, EPOCH + timedelta(seconds=start))


def midnight(local: datetime) -> datetime:
    """The first instant (UTC) of the local date of an aware datetime, or what stands in for it."""
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0).astimezone(UTC)
