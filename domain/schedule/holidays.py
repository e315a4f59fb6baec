"""Days on which a schedule does not fire, as a named calendar that has a version.

The dates are kept with the schedule, so that what ran and what did not stays explained after the
calendar has got its next version.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from functools import cached_property
from itertools import islice
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.refusal import refused

Roll = Literal["drop", "next", "previous"]
"""What becomes of a fire time on a holiday: none, or the same time on the next or previous day off
the calendar."""

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

MOST_DATES = 4096
LONGEST_CLOSURE_DAYS = 62
"""The most days in a row that may be off where fire times roll over them."""


class HolidayCalendar(BaseModel):
    """Days off: single dates and, where the calendar says so, days of the week.

    Up to 4,096 dates; ``weekdays_off`` from ``mon`` to ``sun``, but not all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=128)]
    version: Annotated[str, Field(min_length=1, max_length=64)]
    dates: Annotated[tuple[date, ...], Field(max_length=MOST_DATES)] = ()
    weekdays_off: tuple[Weekday, ...] = ()

    def __init__(
        self,
        name: str,
        version: str,
        dates: Iterable[date | str] = (),
        weekdays_off: Iterable[Weekday] = (),
    ):
        try:
            BaseModel.__init__(
                self,
                name=name,
                version=version,
                dates=tuple(islice(dates, MOST_DATES + 1)),
                weekdays_off=tuple(islice(weekdays_off, 15)),
            )
        except ValidationError as error:
            raise refused(type(self).__name__, error) from None

    @field_validator("dates")
    @classmethod
    def _ordered(cls, dates: tuple[date, ...]) -> tuple[date, ...]:
        return tuple(sorted(set(dates)))

    @field_validator("weekdays_off")
    @classmethod
    def _some_day_is_left(cls, weekdays: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
        if len(set(weekdays)) == 7:
            raise InvalidSchedule("weekdays_off: all seven; then nothing is left to fire on")
        return tuple(day for day in _WEEKDAYS if day in weekdays)

    @cached_property
    def _dates(self) -> frozenset[date]:
        return frozenset(self.dates)

    @cached_property
    def _weekdays(self) -> frozenset[int]:
        return frozenset(_WEEKDAYS.index(day) for day in self.weekdays_off)

    def is_off(self, day: date) -> bool:
        """Whether this local date is a holiday."""
        return day in self._dates or day.weekday() in self._weekdays

    def following(self, day: date, step: int) -> date | None:
        """The nearest day that is not off, from ``day`` on by ``step`` (1 or -1) days.

        ``None`` if ``LONGEST_CLOSURE_DAYS`` in a row are off.
        """
        for _ in range(LONGEST_CLOSURE_DAYS + 1):
            if not self.is_off(day):
                return day
            day += timedelta(step)
        return None
