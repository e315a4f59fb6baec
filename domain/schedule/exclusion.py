"""Dates, local times and instants at which a schedule does not fire."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.fire_time import FireTime
from horolog.domain.schedule.holidays import HolidayCalendar
from horolog.domain.schedule.omission import OmissionReason

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
        return value if value.tzinfo is None else _instant(value)
    if isinstance(value, date):
        return value
    raise InvalidSchedule(f"exclude: {value!r} is neither a date nor a time")


def _instant(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidSchedule(f"exclude: {value.isoformat()} is outside of the calendar") from None


class Omissions:
    """Tells which fire times are left out: by nominal local date, nominal local time or instant."""

    def __init__(self, exclude: tuple[Exclusion, ...], holidays: HolidayCalendar | None):
        self._dates = {item for item in exclude if not isinstance(item, datetime)}
        self._times = {item for item in exclude if isinstance(item, datetime)}
        self._holidays = holidays

    def reason(self, fire: FireTime) -> OmissionReason | None:
        """Why this fire time is left out, ``None`` if it is not."""
        nominal = fire.nominal.replace(fold=0)
        if nominal.date() in self._dates or fire.at in self._times or nominal in self._times:
            return "excluded"
        return "holiday" if self._on_holiday(fire) else None

    def whole_date(self, fire: FireTime) -> bool:
        """Whether everything on the fire time's nominal date is left out."""
        return fire.nominal.date() in self._dates or self._on_holiday(fire)

    def _on_holiday(self, fire: FireTime) -> bool:
        return self._holidays is not None and self._holidays.is_off(fire.nominal.date())


def without(source: Source, omissions: Omissions, after: datetime) -> Iterator[FireTime]:
    """The fire times of ``source`` but for the omitted ones.

    An omitted date is left at its end in one step, however often the schedule fires on it.
    """
    fires = source(after)
    in_a_row = 0
    while (fire := next(fires, None)) is not None:
        if omissions.reason(fire) is None:
            in_a_row = 0
            yield fire
            continue
        in_a_row += 1
        if in_a_row > MOST_OMITTED_IN_A_ROW:
            return
        if omissions.whole_date(fire) and (day_end := _day_end(fire)) > fire.at:
            fires = source(day_end - TICK)


def _day_end(fire: FireTime) -> datetime:
    tomorrow = datetime.combine(fire.nominal.date() + timedelta(1), datetime.min.time())
    return tomorrow.replace(tzinfo=fire.local.tzinfo).astimezone(UTC)
