"""Once: a single instant."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, Self, Unpack

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.fire_time import FireTime, clock
from horolog.domain.schedule.local_instants import LocalInstants, local_instants
from horolog.domain.schedule.window import Window, WindowedSchedule, within_calendar
from horolog.domain.schedule.zone_data import zone as zone_named


class Once(WindowedSchedule):
    """Fires at one instant: an aware datetime, or a local one and its zone.

    A local time follows RFC 5545 section 3.3.5: one that does not exist is read with the offset
    before the gap, one that happens twice is the first. ``strict=True`` refuses both and names the
    two instants; it is a check when the schedule is written, not a part of its value. A local time
    is kept as local, so that new zone data moves it as its author would expect. A datetime without
    a zone, and without ``zone``, is refused. The other keywords are those of
    :class:`Window`.
    """

    kind: Literal["once"] = "once"
    at: datetime
    zone: str | None = None

    def __init__(
        self,
        at: datetime | str,
        zone: str | None = None,
        *,
        strict: bool = False,
        **window: Unpack[Window],
    ):
        self._validated(at=at, zone=zone, **window)
        if self.zone is not None:
            zone_named(self.zone)
        within_calendar("at", self.at)
        if self.at.tzinfo is not None:
            self._settle("at", self.at.astimezone(UTC))
        elif self.zone is None:
            raise InvalidSchedule(
                f"at: {self.at.isoformat()} has no zone; add an offset such as +00:00, or give the "
                "zone it is local to, such as zone='Europe/Berlin'"
            )
        elif strict:
            _refuse_unclear(self.at, self._instants, self.zone)

    @classmethod
    def in_seconds(cls, seconds: float, now: datetime, **window: Unpack[Window]) -> Self:
        """So many elapsed seconds after ``now`` (aware).

        Adding a duration to an aware datetime moves its wall clock instead, which is an hour off
        across a clock change.
        """
        if now.tzinfo is None:
            raise InvalidSchedule(f"now: {now.isoformat()} has no zone; add one, such as UTC")
        try:
            at = now.astimezone(UTC) + timedelta(seconds=seconds)
        except (OverflowError, ValueError):
            raise InvalidSchedule(f"seconds: {seconds} leads out of the calendar") from None
        return cls(at, **window)

    @property
    def _instants(self) -> LocalInstants:
        return local_instants(self.at, self._zone())

    def _stated(self, after: datetime) -> Iterator[FireTime]:
        if self.at.tzinfo is not None and self.at <= after:
            return
        fire = self._fire()
        if fire.at > after:
            yield fire

    def _fire(self) -> FireTime:
        if self.at.tzinfo is not None:
            return FireTime(self.at, self.at.astimezone(self._zone()))
        found = self._instants
        local = found.first.astimezone(self._zone())
        if found.gap_end is not None:
            note = f"{clock(self.at)} does not exist; read with the offset before the gap"
            return FireTime(found.first, local, note, self.at)
        note = f"{clock(self.at)} happens twice; this is the first" if found.repeated else ""
        return FireTime(found.first, local, note)


def _refuse_unclear(at: datetime, found: LocalInstants, zone: str) -> None:
    if found.gap_end is None and not found.repeated:
        return
    what = "happens twice" if found.repeated else "does not exist"
    either = " or ".join(
        instant.astimezone(zone_named(zone)).isoformat() for instant in (found.first, found.second)
    )
    raise InvalidSchedule(f"at: {at.isoformat()} {what} in {zone}; say which is meant: {either}")
