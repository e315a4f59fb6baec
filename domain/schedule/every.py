"""Every: a fixed interval from an anchor."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Literal, Self, Unpack

from pydantic import Field

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.fire_time import (
    CALENDAR_END,
    FireTime,
    fire_time,
    local_second,
    utc_second,
)
from horolog.domain.schedule.local_walk import ClockRule, walk
from horolog.domain.schedule.posix_rule import DAY_S
from horolog.domain.schedule.window import Window, WindowedSchedule, aware
from horolog.domain.schedule.zone_data import zone as zone_named

SHORTEST_S = 0.1
LONGEST_S = 100 * 366 * DAY_S


class LocalDays:
    """Every so many days at one local time; implements ``NominalTimes``."""

    def __init__(self, anchor: int, step: int):
        self._anchor = anchor
        self._step = step

    def between(self, low: int, high: int) -> Iterator[int]:
        count = max(0, -((self._anchor - low) // self._step))
        yield from range(self._anchor + count * self._step, high, self._step)


class Every(WindowedSchedule):
    """Fires at the anchor and every ``seconds`` after it: elapsed time, whatever the clock does.

    ``seconds`` from 0.1 to a century, to the microsecond. The anchor is an aware datetime, or a
    local one with a ``zone``; it is itself a fire time, and none comes before it. Without one,
    ``start`` is the anchor, else the instant that ``anchored`` (registration) or a question brings:
    that one is not a fire time, since fire times are later than the instant asked from.

    ``keep_local_hour`` (whole days, with a ``zone``) keeps the local time of day: a day on which
    the clock changes is then shorter or longer. A local time in a gap runs after it, one that
    happens twice runs at the first. The other keywords are those of :class:`Window`.
    """

    kind: Literal["every"] = "every"
    seconds: Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S, allow_inf_nan=False)]
    anchor: datetime | None = None
    zone: str | None = None
    keep_local_hour: bool = False

    def __init__(
        self,
        seconds: float | timedelta,
        anchor: datetime | str | None = None,
        *,
        zone: str | None = None,
        keep_local_hour: bool = False,
        **window: Unpack[Window],
    ):
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        self._validated(
            seconds=seconds, anchor=anchor, zone=zone, keep_local_hour=keep_local_hour, **window
        )
        if self.zone is not None:
            zone_named(self.zone)
        self._settle("anchor", self._as_instant("anchor", self.anchor) or self.start)
        if self.keep_local_hour and (self.zone is None or self.seconds % DAY_S):
            raise InvalidSchedule(
                f"keep_local_hour needs a zone and whole days (multiples of {DAY_S} seconds); "
                f"zone is {self.zone!r}, seconds {self.seconds:g}"
            )

    @cached_property
    def _interval(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    def anchored(self, now: datetime, hash_key: str | None = None) -> Self:
        del hash_key
        if self.anchor is not None:
            return self
        return self.model_copy(update={"anchor": aware(now)})

    def _stated(self, after: datetime) -> Iterator[FireTime]:
        anchor = self.anchor or after
        return self._local(anchor, after) if self.keep_local_hour else self._elapsed(anchor, after)

    def _elapsed(self, anchor: datetime, after: datetime) -> Iterator[FireTime]:
        zone = self._zone()
        count = max(0, (after - anchor) // self._interval + 1)
        try:
            at = anchor + count * self._interval
            while at < CALENDAR_END:
                yield FireTime(at, at.astimezone(zone))
                at += self._interval
        except OverflowError:  # a step past what a datetime can hold is past the end as well
            return

    def _local(self, anchor: datetime, after: datetime) -> Iterator[FireTime]:
        zone = self._zone()
        nominal = local_second(anchor.astimezone(zone).replace(tzinfo=None))
        earliest = max(utc_second(after), utc_second(anchor) - 1)
        for landing in walk(
            LocalDays(nominal, int(self.seconds)), self.zone or "UTC", earliest, ClockRule()
        ):
            yield fire_time(landing, zone)
