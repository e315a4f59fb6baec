"""On which days of a month a cron expression fires.

A month is told by its number, its length and the weekday of its first day; there are few such
shapes, so the days of one are computed once and looked up ever after. Nothing walks day by day.

The rule of crontab(5), judged by the first character: if the day of month or the day of week begins
with a star, both must hold; if neither does, either is enough. ``and`` and ``or`` override that.
``L`` (last day), ``L-3``, ``LW`` and ``15W`` (nearest weekday, inside the month), ``5L`` (last
Friday) and ``2#1`` (first Tuesday) are read as Quartz has them, with weekdays counted from Sunday,
which is 0 or 7.
"""

import re
from calendar import isleap
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple

from horolog.domain.schedule.cron_text import DAY, WEEKDAY, WEEKDAYS, Field, refuse

DayRule = Literal["crontab", "and", "or"]

_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class MonthShape(NamedTuple):
    """A month's number, its days, and the weekday of its first (Sunday is 0)."""

    month: int
    length: int
    first_weekday: int

    def weekday(self, day: int) -> int:
        return (self.first_weekday + day - 1) % 7


@lru_cache(maxsize=4096)
def month_shape(year: int, month: int) -> MonthShape:
    """The shape of a month of the Gregorian calendar."""
    length = 29 if month == 2 and isleap(year) else _LENGTHS[month]
    return MonthShape(month, length, date(year, month, 1).isoweekday() % 7)


def all_shapes(months: tuple[int, ...]) -> tuple[MonthShape, ...]:
    """Every shape that these months ever have: the calendar has 14 kinds of years."""
    return tuple(
        MonthShape(month, length, weekday)
        for month in months
        for length in ((28, 29) if month == 2 else (_LENGTHS[month],))
        for weekday in range(7)
    )


DaysOf = Callable[[MonthShape], frozenset[int]]


class DayMatcher(NamedTuple):
    """The two day fields and the rule that joins them."""

    days: frozenset[int]
    weekdays: frozenset[int]
    special_days: tuple[DaysOf, ...]
    special_weekdays: tuple[DaysOf, ...]
    both: bool

    def days_of(self, shape: MonthShape) -> tuple[int, ...]:
        """The matching days of a month, in order."""
        numbers = range(1, shape.length + 1)
        by_day = self.days.union(*(days(shape) for days in self.special_days))
        by_weekday = {day for day in numbers if shape.weekday(day) in self.weekdays}
        by_weekday = by_weekday.union(*(days(shape) for days in self.special_weekdays))
        matching = by_day & by_weekday if self.both else by_day | by_weekday
        return tuple(day for day in numbers if day in matching)


def day_matcher(
    day: Field, weekday: Field, days: frozenset[int], weekdays: frozenset[int], rule: DayRule
) -> DayMatcher:
    """``days`` and ``weekdays`` are the plain values of the two fields."""
    star = day.starred or weekday.starred
    both = {"crontab": star, "and": True, "or": day.unrestricted or weekday.unrestricted}[rule]
    return DayMatcher(
        days,
        weekdays,
        tuple(_special_day(day, item) for item in day.special),
        tuple(_special_weekday(weekday, item) for item in weekday.special),
        both,
    )


def _special_day(field: Field, item: str) -> DaysOf:
    if item == "lw":
        return lambda shape: frozenset({_nearest_weekday(shape, shape.length)})
    if match := re.fullmatch(r"l(?:-([0-9]{1,2}))?", item):
        back = int(match[1] or 0)
        if back > 30:
            raise refuse(DAY, field.text, f"{back} days before the last; write at most L-30")
        return lambda shape: frozenset({shape.length - back} - {0, -1, -2})
    if match := re.fullmatch(r"([0-9]{1,2})w", item):
        day = int(match[1])
        if not 1 <= day <= 31:
            raise refuse(DAY, field.text, f"{day}W is out of range; write 1W to 31W")
        return lambda shape: frozenset(
            {_nearest_weekday(shape, day)} if day <= shape.length else ()
        )
    raise refuse(DAY, field.text, f"cannot read {item.upper()!r}; write L, L-3, LW or 15W")


def _nearest_weekday(shape: MonthShape, day: int) -> int:
    weekday = shape.weekday(day)
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < shape.length else day - 2
    return day


def _special_weekday(field: Field, item: str) -> DaysOf:
    if match := re.fullmatch(r"([0-7]|[a-z]{3})#([1-5])", item):
        weekday, nth = _weekday(field, match[1]), int(match[2])
        return lambda shape: frozenset(_all_of(shape, weekday)[nth - 1 : nth])
    if match := re.fullmatch(r"([0-7]|[a-z]{3})l|l([0-7]|[a-z]{3})", item):
        weekday = _weekday(field, match[1] or match[2])
        return lambda shape: frozenset(_all_of(shape, weekday)[-1:])
    raise refuse(
        WEEKDAY,
        field.text,
        f"cannot read {item.upper()!r}; write 5L for the last Friday, 2#1 for the first Tuesday",
    )


def _weekday(field: Field, text: str) -> int:
    if text.isdigit():
        return int(text) % 7
    if text in WEEKDAYS:
        return WEEKDAYS[text]
    raise refuse(WEEKDAY, field.text, f"{text!r} is not a weekday; write {', '.join(WEEKDAYS)}")


def _all_of(shape: MonthShape, weekday: int) -> range:
    first = 1 + (weekday - shape.first_weekday) % 7
    return range(first, shape.length + 1, 7)
