"""Dates, local times and instants at which a schedule does not fire."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.fire_time import FireTime
from horolog.domain.schedule.holidays import HolidayCalendar

TICK = timedelta(microseconds=1)

MOST_OMITTED_IN_A_ROW = 1000
"""Fire times that may be left out one after the other; then the schedule counts as finished."""

Source = Callable[[datetime], Iterator[FireTime]]
"""Fire times later than an instant, in order."""

Exclusion = date | datetime


def read_exclusion(value: object) -> Exclusion:
    """A date stays one, an aware datetime becomes UTC, a datetime without a zone a local time."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            raise InvalidSchedule(
                f"exclude: {value[:64]!r} is neither a date nor a time; write 2027-12-24 or "
                "2027-12-24T18:00:00 with or without an offset"
            ) from None
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return value
    raise InvalidSchedule(f"exclude: {value!r} is neither a date nor a time")


class Omissions:
    """Tells which fire times are left out: by nominal local date, nominal local time or instant."""

    def __init__(self, exclude: tuple[Exclusion, ...], holidays: HolidayCalendar | None):
        self._dates = {item for item in exclude if not isinstance(item, datetime)}
        self._times = {item for item in exclude if isinstance(item, datetime)}
        self._holidays = holidays

    def whole_date(self, fire: FireTime) -> bool:
        """Whether everything on the fire time's nominal date is left out."""
        day = fire.nominal.date()
        off = self._holidays is not None and self._holidays.is_off(day)
        return off or day in self._dates

    def alone(self, fire: FireTime) -> bool:
        """Whether this very fire time is left out."""
        return bool(self._times) and (
            fire.at in self._times or fire.nominal.replace(fold=0) in self._times
        )


def without(source: Source, omissions: Omissions, after: datetime) -> Iterator[FireTime]:
    """The fire times of ``source`` but for the omitted ones.

    An omitted date is left at its end in one step, however often the schedule fires on it.
    """
    fires = source(after)
    in_a_row = 0
    while (fire := next(fires, None)) is not None:
        whole = omissions.whole_date(fire)
        if not whole and not omissions.alone(fire):
            in_a_row = 0
            yield fire
            continue
        in_a_row += 1
        if in_a_row > MOST_OMITTED_IN_A_ROW:
            return
        if whole and (day_end := _day_end(fire)) > fire.at:
            fires = source(day_end - TICK)


def _day_end(fire: FireTime) -> datetime:
    tomorrow = datetime.combine(fire.nominal.date() + timedelta(1), datetime.min.time())
    return tomorrow.replace(tzinfo=fire.local.tzinfo).astimezone(UTC)
