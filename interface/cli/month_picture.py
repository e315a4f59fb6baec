"""A month of a schedule at a glance: a line for each local day, a column for each local hour.

A cell shows how often the schedule fires in that hour, up to ``+`` for more than nine; so the hour
that a clock change leaves out, or repeats, can be seen without reading a list.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from horolog.domain.schedule import FireTime

if TYPE_CHECKING:
    from horolog.domain.schedule import Schedule

MOST_IN_A_CELL = 10
_HOUR = timedelta(hours=1)
_MOMENT = timedelta(microseconds=1)


def month_picture(schedule: "Schedule", first: FireTime) -> list[str]:
    """The month that ``first`` lies in, in its zone: the lines of the picture.

    Bounded whatever the schedule: an hour that is full is left at its end.
    """
    zone = first.local.tzinfo
    month = first.local.date().replace(day=1)
    counts: Counter[tuple[int, int]] = Counter()
    changed: set[int] = set()
    for fire in _bounded(schedule, datetime(month.year, month.month, 1, tzinfo=zone), month):
        counts[fire.local.day, fire.local.hour] += 1
        if fire.note:
            changed.add(fire.local.day)
    lines = [f"{month:%Y-%m}   " + " ".join(f"{hour:02}" for hour in range(24))]
    day = month
    while day.month == month.month:
        cells = " ".join(f"{_cell(counts[day.day, hour]):>2}" for hour in range(24))
        note = "  clock change" if day.day in changed or _changes(day, zone) else ""
        lines.append(f"{day:%a %d}    {cells}{note}")
        day += timedelta(days=1)
    return lines


def _bounded(schedule: "Schedule", start: datetime, month: date) -> Iterator[FireTime]:
    """The fire times of the month, at most ``MOST_IN_A_CELL`` of one hour."""
    after = start.astimezone(UTC) - _MOMENT
    while True:
        in_hour: Counter[datetime] = Counter()
        for fire in schedule.fires(after):
            if (fire.local.year, fire.local.month) != (month.year, month.month):
                return
            yield fire
            hour = fire.at.replace(minute=0, second=0, microsecond=0)
            in_hour[hour] += 1
            if in_hour[hour] >= MOST_IN_A_CELL:
                after = hour + _HOUR - _MOMENT
                break
        else:
            return


def _changes(day: date, zone: object) -> bool:
    """Whether the zone's clock is set on that day: midnight to midnight is no whole day."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)  # pyright: ignore[reportArgumentType]
    return midnight.utcoffset() != (midnight + timedelta(days=1)).utcoffset()


def _cell(count: int) -> str:
    if count == 0:
        return "·"
    return str(count) if count < MOST_IN_A_CELL else "+"
