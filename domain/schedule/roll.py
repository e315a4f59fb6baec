"""Fire times on a holiday, moved to a day that is none: the same local time, another date.

Days are taken one by one: on a working day fall its own fire times and those of the days off that
roll to it. Two that come to the same instant are one.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from horolog.domain.schedule.exclusion import TICK, Source
from horolog.domain.schedule.fire_time import FireTime
from horolog.domain.schedule.holidays import HolidayCalendar
from horolog.domain.schedule.local_instants import local_instants

MOST_EMPTY_DAYS = 1000
"""Working days without a fire time that are looked at before the schedule counts as finished."""


class RollingFires:
    """The fire times of ``source`` with holidays rolled: forward for ``step`` 1, back for -1."""

    def __init__(self, source: Source, zone: ZoneInfo, holidays: HolidayCalendar, step: int):
        self._source = source
        self._zone = zone
        self._holidays = holidays
        self._step = step

    def after(self, instant: datetime) -> Iterator[FireTime]:
        """Fire times later than ``instant``, in order."""
        try:
            while (fire := self._next(instant)) is not None:
                yield fire
                instant = fire.at
        except OverflowError:  # a day past the end of the calendar
            return

    def _next(self, after: datetime) -> FireTime | None:
        today = after.astimezone(self._zone).date()
        work = self._holidays.following(today, 1)
        for _ in range(MOST_EMPTY_DAYS):
            if work is None:
                return None
            sources = self._rolling_to(work)
            landed = [self._first_on(day, work, after) for day in sources]
            found = min((fire for fire in landed if fire is not None), default=None)
            if found is not None:
                return found
            work = self._next_working_day(work, max(sources))
        return None

    def _rolling_to(self, work: date) -> list[date]:
        """The working day and the days off whose fire times come to it."""
        days = [work]
        neighbour = work - timedelta(self._step)
        while self._holidays.is_off(neighbour) and len(days) <= 62:
            days.append(neighbour)
            neighbour -= timedelta(self._step)
        return days

    def _first_on(self, day: date, work: date, after: datetime) -> FireTime | None:
        since = self._midnight(day) - TICK
        if day == work:
            since = max(since, after)
        elif after.astimezone(self._zone).date() == work:
            clock = after.astimezone(self._zone).replace(tzinfo=None).time()
            since = datetime.combine(day, clock, self._zone).astimezone(UTC) - TICK
        for fire in self._source(since):
            nominal = fire.nominal.date()
            if nominal > day:
                return None
            if nominal == day and (landed := self._moved(fire, work)).at > after:
                return landed
        return None

    def _moved(self, fire: FireTime, work: date) -> FireTime:
        nominal = fire.nominal
        if nominal.date() == work:
            return fire
        at = local_instants(datetime.combine(work, nominal.time()), self._zone).after_gap
        note = f"{nominal.date()} is off ({self._holidays.name}); moved to {work}"
        return FireTime(at, at.astimezone(self._zone), note, nominal)

    def _next_working_day(self, work: date, last_source: date) -> date | None:
        """The working day that the first fire time after ``last_source`` comes to."""
        upcoming = next(self._source(self._midnight(last_source + timedelta(1)) - TICK), None)
        if upcoming is None:
            return None
        least = self._holidays.following(last_source + timedelta(1), 1)
        target = self._holidays.following(upcoming.nominal.date(), self._step)
        if target is None or least is None or target <= work:
            return least
        return target

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, datetime.min.time(), self._zone).astimezone(UTC)
