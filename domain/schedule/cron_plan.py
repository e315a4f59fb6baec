"""A cron expression made ready: sorted values per field, from which nominal local times are picked.

croniter turns the fields into values; which days match and the walk are ours. A plan depends on the
expression (and its hash key) alone, not on a zone, and is kept in a bounded cache, since reading an
expression costs ten times as much as asking for its next time.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import product

from croniter import croniter
from croniter.croniter import CroniterError

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.cron_days import (
    DayMatcher,
    DayRule,
    MonthShape,
    all_shapes,
    day_matcher,
    month_shape,
)
from horolog.domain.schedule.cron_text import DAY, Field, plain_items, read_fields
from horolog.domain.schedule.posix_rule import DAY_S, EPOCH_DAY

KEPT_PLANS = 2048
"""Expressions kept ready; each takes some kilobytes."""

MOST_LISTED = 4096
"""Times of a day that are listed; more of them (every second) are stepped through."""


class CronPlan:
    """The nominal local times of an expression; implements ``NominalTimes``."""

    def __init__(self, fields: tuple[Field, ...], rule: DayRule):
        _, minute, hour, day, month, weekday = fields
        values = _expanded(fields)
        self.elapsed = minute.starred or hour.starred
        self.hashed = any(field.hashed for field in fields)
        self.months = values[4]
        self.matcher: DayMatcher = day_matcher(
            day, weekday, frozenset(values[3]), frozenset(values[5]), rule
        )
        self._clock = (values[2], values[1], values[0])
        self._listed = (
            clock_times(*self._clock)
            if len(values[0]) * len(values[1]) * len(values[2]) <= MOST_LISTED
            else None
        )
        self._days: dict[MonthShape, tuple[int, ...]] = {}
        if not any(self.days_of(shape) for shape in all_shapes(self.months)):
            raise InvalidSchedule(
                f"cron expression, {DAY.name} field {day.text!r} with month {month.text!r} and day "
                f"of week {weekday.text!r}: there is no such date in any year, so it never fires"
            )

    def days_of(self, shape: MonthShape) -> tuple[int, ...]:
        """The matching days of months of this shape, computed when first asked for."""
        days = self._days.get(shape)
        if days is None:
            days = self._days[shape] = self.matcher.days_of(shape)
        return days

    def between(self, low: int, high: int) -> Iterator[int]:
        """Nominal times in [low, high), as seconds since 1970 on the local clock."""
        first_day, first_second = divmod(low, DAY_S)
        for day in self._days_from(first_day):
            start = day * DAY_S
            if start >= high:
                return
            for second in self._times(first_second if day == first_day else 0):
                if start + second >= high:
                    return
                yield start + second

    def _days_from(self, day: int) -> Iterator[int]:
        """Matching days, as days since 1970; ends with year 9999."""
        begin = date.fromordinal(day + EPOCH_DAY)
        index = bisect_left(self.months, begin.month)
        for year in range(begin.year, 10_000):
            for month in self.months[index:]:
                before_first = date(year, month, 1).toordinal() - EPOCH_DAY - 1
                for number in self.days_of(month_shape(year, month)):
                    if before_first + number >= day:
                        yield before_first + number
            index = 0

    def _times(self, least: int) -> Iterator[int]:
        """Seconds of the day from ``least`` on."""
        if self._listed is None:
            return _stepped(self._clock, least)
        return iter(self._listed[bisect_left(self._listed, least) :] if least else self._listed)


@lru_cache(maxsize=KEPT_PLANS)
def cron_plan(expression: str, hash_key: str, rule: DayRule) -> CronPlan:
    """The plan of an expression; raises ``InvalidSchedule`` if it cannot be read or never fires."""
    return CronPlan(read_fields(expression, hash_key), rule)


@lru_cache(maxsize=512)
def clock_times(
    hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]
) -> tuple[int, ...]:
    """The seconds of the day, in order; shared by all plans with the same clock."""
    return tuple(
        hour * 3600 + minute * 60 + second
        for hour, minute, second in product(hours, minutes, seconds)
    )


def _stepped(
    clock: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], least: int
) -> Iterator[int]:
    hours, minutes, seconds = clock
    for hour in hours[bisect_left(hours, least // 3600) :]:
        for minute in minutes:
            start = hour * 3600 + minute * 60
            if start + 59 >= least:
                for second in seconds:
                    if start + second >= least:
                        yield start + second


def _expanded(fields: tuple[Field, ...]) -> tuple[tuple[int, ...], ...]:
    """The plain values of each field, expanded by croniter; special items are read elsewhere.

    croniter takes the seconds last. A star stays a star to it; a field with special items only has
    no plain values.
    """
    second, *others = (
        "*" if field.unrestricted or not field.spans else ",".join(plain_items(field))
        for field in fields
    )
    try:
        expanded = croniter.expand(" ".join([*others, second]))[0]
    except CroniterError as error:  # pragma: no cover - what croniter refuses was refused before
        raise InvalidSchedule(f"cron expression: {error}") from error
    ordered = [expanded[5], *expanded[:5]]
    return tuple(_values(field, items) for field, items in zip(fields, ordered, strict=True))


def _values(field: Field, items: Sequence[int | str]) -> tuple[int, ...]:
    if not field.spans:
        return ()
    if "*" in items:
        return tuple(range(field.kind.least, field.kind.greatest + 1))
    return tuple(sorted({int(item) for item in items}))
