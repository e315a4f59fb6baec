"""A month of fire times counted by local day and hour: the numbers of a small picture."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from horolog.domain.schedule.exclusion import TICK
from horolog.domain.schedule.window import WindowedSchedule
from horolog.domain.schedule.zone_data import zone

MOST_COUNTED = 100_000
"""Fire times that are counted; a schedule of seconds reaches it on the second day."""


@dataclass(frozen=True, slots=True)
class MonthPicture:
    """``counts[day - 1][hour]`` fire times; an hour that the clock shows twice holds both passes.

    ``notes`` holds what a clock change did, by day of the month; ``complete`` is false where the
    counting stopped at ``MOST_COUNTED``.
    """

    first: date
    zone: str
    counts: tuple[tuple[int, ...], ...]
    notes: dict[int, tuple[str, ...]]
    complete: bool


def month_picture(schedule: WindowedSchedule, year: int, month: int) -> MonthPicture:
    """Counts the fire times of one month in the schedule's zone, UTC if it has none."""
    shown = schedule.clock_zone
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    counts = [[0] * 24 for _ in range((following - first).days)]
    notes: dict[int, list[str]] = {}
    counted = 0
    for fire in schedule.between(
        _midnight(first, shown) - TICK, _midnight(following, shown) - TICK
    ):
        local = fire.at.astimezone(zone(shown))
        counts[local.day - 1][local.hour] += 1
        if fire.note and fire.note not in (seen := notes.setdefault(local.day, [])):
            seen.append(fire.note)
        counted += 1
        if counted == MOST_COUNTED:
            break
    return MonthPicture(
        first=first,
        zone=shown,
        counts=tuple(tuple(hours) for hours in counts),
        notes={day: tuple(said) for day, said in notes.items()},
        complete=counted < MOST_COUNTED,
    )


def _midnight(day: date, name: str) -> datetime:
    return datetime.combine(day, datetime.min.time(), zone(name)).astimezone(UTC)
