"""On which days of a period (a year, month, week or day) a recurrence rule fires.

python-dateutil expands one month or one year at a time and is never asked for more: left to itself
it searches a rule that never fires to the year 9999, and walks to a late date from the very first.
A month's days depend on its shape alone, a year's on its own and its neighbours' length (weeks
cross the year); both are kept.
"""

from bisect import bisect_left
from calendar import isleap
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

from dateutil.rrule import MONTHLY, YEARLY, rrule, weekday

from horolog.domain.schedule.cron_days import MonthShape, month_shape
from horolog.domain.schedule.posix_rule import DAY_S, EPOCH_DAY
from horolog.domain.schedule.recurrence_text import Recurrence

HORIZON_YEARS = 100
"""A rule that is silent for so long is taken to be over, and refused if it never fired before."""

_ONE_PERIOD = 120_000
"""An interval that takes dateutil past year 9999 after the first month or year."""


class Anchor(NamedTuple):
    """The local start of a recurrence: its date, and its second of the day."""

    day: date
    second: int


class RecurringTimes:
    """The nominal local times of a rule from an anchor on; implements ``NominalTimes``."""

    def __init__(self, rule: Recurrence, anchor: Anchor):
        self._rule = rule
        self._anchor = anchor
        self._first_day = anchor.day.toordinal() - EPOCH_DAY
        self._times = rule.times(anchor.second)
        self._months: dict[MonthShape, tuple[int, ...]] = {}
        self._years: dict[tuple[bool, bool, bool, int], tuple[int, ...]] = {}

    def between(self, low: int, high: int) -> Iterator[int]:
        """Nominal times in [low, high); ends after ``HORIZON_YEARS`` without any."""
        low = max(low, self._first_day * DAY_S + self._anchor.second)
        silent_since = low // DAY_S
        for start, days in self._periods(low // DAY_S):
            if start * DAY_S >= high or start - silent_since > HORIZON_YEARS * 366:
                return
            for second in self._picked(days):
                if second >= high:
                    return
                if second >= low:
                    silent_since = second // DAY_S
                    yield second

    def _picked(self, days: tuple[int, ...]) -> Iterator[int]:
        """The times of a period, in order, cut to the positions that the rule picks."""
        times, count = self._times, len(self._times)
        size = len(days) * count
        if not self._rule.positions:
            yield from (day * DAY_S + time for day in days for time in times)
            return
        wanted = {at - 1 if at > 0 else size + at for at in self._rule.positions}
        for index in sorted(wanted):
            if 0 <= index < size:
                yield days[index // count] * DAY_S + times[index % count]

    def _periods(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(first day, matching days) of the periods from the one that holds ``day`` on."""
        if self._rule.frequency == "YEARLY":
            return self._yearly(day)
        if self._rule.frequency == "MONTHLY":
            return self._monthly(day)
        return self._weekly(day) if self._rule.frequency == "WEEKLY" else self._daily(day)

    def _yearly(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        step, first = self._rule.interval, self._anchor.day.year
        year = date.fromordinal(day + EPOCH_DAY).year
        for aligned in range(first + -(-(year - first) // step) * step, 10_000, step):
            start = date(aligned, 1, 1).toordinal() - EPOCH_DAY
            yield start, tuple(start + number for number in self._days_of_year(aligned))

    def _monthly(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        step, first = self._rule.interval, self._anchor.day.year * 12 + self._anchor.day.month - 1
        begin = date.fromordinal(day + EPOCH_DAY)
        month = begin.year * 12 + begin.month - 1
        for aligned in range(first + -(-(month - first) // step) * step, 120_000, step):
            year, index = divmod(aligned, 12)
            start = date(year, index + 1, 1).toordinal() - EPOCH_DAY
            shape = month_shape(year, index + 1)
            yield start, tuple(start + number for number in self._days_of_month(shape))

    def _weekly(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        rule, step = self._rule, self._rule.interval * 7
        weekdays = {wanted.weekday for wanted in rule.weekdays} or {self._anchor.day.weekday()}
        offsets = sorted((wanted - rule.week_start) % 7 for wanted in weekdays)
        first = self._first_day - (self._anchor.day.weekday() - rule.week_start) % 7
        for start in range(first + (day - first) // step * step, _last_day(), step):
            days = (start + offset for offset in offsets)
            yield start, tuple(each for each in days if self._in_months(each))

    def _in_months(self, day: int) -> bool:
        months = self._rule.months
        return not months or date.fromordinal(day + EPOCH_DAY).month in months

    def _daily(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Each matching day is a period; months without one are passed over as a whole."""
        begin = date.fromordinal(day + EPOCH_DAY)
        for month in range(begin.year * 12 + begin.month - 1, 120_000):
            year, index = divmod(month, 12)
            start = date(year, index + 1, 1).toordinal() - EPOCH_DAY
            numbers = self._days_of_month(month_shape(year, index + 1))
            matching = [
                start + number
                for number in numbers
                if (start + number - self._first_day) % self._rule.interval == 0
            ]
            if not matching:
                yield start, ()
            for each in matching[bisect_left(matching, day) :]:
                yield each, (each,)

    def _days_of_month(self, shape: MonthShape) -> tuple[int, ...]:
        days = self._months.get(shape)
        if days is None:
            days = self._months[shape] = self._expand_month(shape)
        return days

    def _expand_month(self, shape: MonthShape) -> tuple[int, ...]:
        """Days of a month, counted from 0."""
        rule = self._rule
        if rule.months and shape.month not in rule.months:
            return ()
        month_days = rule.month_days
        if not month_days and not rule.weekdays:
            month_days = (
                tuple(range(1, 32)) if rule.frequency == "DAILY" else (self._anchor.day.day,)
            )
        found = rrule(
            MONTHLY,
            dtstart=_like(shape),
            interval=_ONE_PERIOD,
            bymonthday=month_days or None,
            byweekday=self._weekdays(),
        )
        return tuple(each.day - 1 for each in found)

    def _days_of_year(self, year: int) -> tuple[int, ...]:
        leap = isleap(year - 1), isleap(year), isleap(year + 1)
        key = (*leap, date(year, 1, 1).weekday())
        days = self._years.get(key)
        if days is None:
            days = self._years[key] = self._expand_year(year)
        return days

    def _expand_year(self, year: int) -> tuple[int, ...]:
        """Days of a year, counted from 0. What the rule leaves out comes from the anchor.

        Week numbers are ours: dateutil 2.9 and 4.0 number the days of January that belong to the
        last week of December by the length of the wrong year.
        """
        rule, anchor = self._rule, self._anchor.day
        months, month_days, weekdays = rule.months, rule.month_days, self._weekdays()
        if not (rule.year_days or month_days or weekdays):
            if rule.week_numbers:
                weekdays = (weekday(anchor.weekday()),)
            else:
                months, month_days = months or (anchor.month,), (anchor.day,)
        found = rrule(
            YEARLY,
            dtstart=datetime(year, 1, 1),  # noqa: DTZ001 - local, as all nominal times
            interval=_ONE_PERIOD,
            bymonth=months or None,
            byyearday=rule.year_days or None,
            bymonthday=month_days or None,
            byweekday=weekdays,
        )
        days = (each.date() for each in found)
        return tuple(day.timetuple().tm_yday - 1 for day in days if self._in_weeks(day))

    def _in_weeks(self, day: date) -> bool:
        wanted = self._rule.week_numbers
        if not wanted:
            return True
        numbers = week_numbers(day, self._rule.week_start)
        return any(number in wanted for number in numbers)

    def _weekdays(self) -> tuple[weekday, ...] | None:
        return tuple(weekday(day, nth or None) for day, nth in self._rule.weekdays) or None


def week_numbers(day: date, week_start: int) -> tuple[int, int]:
    """The number of a date's week, counted from the first week of its year and from the last.

    A week belongs to the year that holds most of its days (RFC 5545, ISO 8601).
    """
    middle = day - timedelta((day.weekday() - week_start) % 7 - 3)
    in_last = date(middle.year, 12, 28)
    last = in_last - timedelta((in_last.weekday() - week_start) % 7 - 3)
    number, count = ((each.timetuple().tm_yday - 1) // 7 + 1 for each in (middle, last))
    return number, number - count - 1


def _last_day() -> int:
    return date(9999, 12, 20).toordinal() - EPOCH_DAY


def _like(shape: MonthShape) -> datetime:
    """The first day of some month of this shape, from a year that dateutil reads quickly."""
    return next(
        datetime(year, shape.month, 1)  # noqa: DTZ001 - local, as all nominal times
        for year in range(2000, 2028)
        if month_shape(year, shape.month) == shape
    )
