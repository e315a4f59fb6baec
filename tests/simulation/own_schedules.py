"""The fire times of the plan's schedules, counted out: no code of the domain is used here.

Intervals are arithmetic. An expression is tried on every minute: with a star first in a field, on
the minutes as they pass; without one, on the minutes that the clock on the wall shows, where one
that it jumps over counts at the end of the jump, and one that it shows twice counts at the first.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


def fire_times(schedule: dict[str, Any], after: datetime, until: datetime) -> list[datetime]:
    """Those later than ``after``, up to ``until``."""
    match schedule["kind"]:
        case "once":
            # A moment ago still counts, when a one-off is stated: requests travel.
            at = datetime.fromisoformat(schedule["at"])
            return [at] if after - timedelta(seconds=60) < at <= until else []
        case "every":
            anchor = datetime.fromisoformat(schedule["anchor"])
            step = timedelta(seconds=schedule["seconds"])
            number = max(0, (after - anchor) // step)
            found: list[datetime] = []
            while (at := anchor + number * step) <= until:
                if at > after:
                    found.append(at)
                number += 1
            return found
        case _:
            times = _cron(schedule["minutes"], schedule["hours"], schedule["zone"], after.date())
            last = after.date()
            found = [at for at in times if after < at <= until]
            while last < until.date() + timedelta(days=1):
                last += timedelta(days=1)
                times = _cron(schedule["minutes"], schedule["hours"], schedule["zone"], last)
                found += [at for at in times if after < at <= until]
            return sorted(set(found))


@lru_cache(maxsize=4_096)
def _cron(minutes: str, hours: str, zone: str, day: Any) -> tuple[datetime, ...]:
    """The fire times of one day, by UTC or by the wall: neighbouring days may share some."""
    wanted_minutes, wanted_hours = _field(minutes, 60), _field(hours, 24)
    place = _zone(zone)
    first = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - what a wall shows
    if minutes.startswith("*") or hours.startswith("*"):
        walked = (first.replace(tzinfo=UTC) + n * MINUTE for n in range(24 * 60))
        return tuple(
            at
            for at in walked
            if (local := at.astimezone(place)).minute in wanted_minutes
            and local.hour in wanted_hours
        )
    shown = (first + timedelta(hours=h, minutes=m) for h in wanted_hours for m in wanted_minutes)
    return tuple(_instant(local, place) for local in shown)


def _instant(local: datetime, place: ZoneInfo) -> datetime:
    at = local.replace(tzinfo=place, fold=0).astimezone(UTC)
    if at.astimezone(place).replace(tzinfo=None) == local:
        return at
    # The wall never shows it: the first minute that it shows afterwards.
    return next(
        later
        for later in _minutes(at - timedelta(hours=3))
        if later.astimezone(place).replace(tzinfo=None) > local
    )


def _minutes(start: datetime) -> Iterator[datetime]:
    while True:
        yield start
        start += MINUTE


def _field(text: str, size: int) -> list[int]:
    if text.startswith("*"):
        return list(range(0, size, int(text[2:] or 1)))
    return [int(part) for part in text.split(",")]


@lru_cache
def _zone(name: str) -> ZoneInfo:
    """From the package, not from the machine, whose data may be older."""
    path = files("tzdata").joinpath("zoneinfo", *name.split("/"))
    with path.open("rb") as data:
        return ZoneInfo.from_file(data, key=name)
