"""Differential: the walk over clock changes against plain ``zoneinfo`` arithmetic, in all zones.

The reference below knows nothing of stretches or transitions. It lists local times, asks zoneinfo
for the instants of each (both folds, kept if they come back), and finds the end of a gap by
bisection.
It is slow and simple on purpose; it has to agree everywhere, without exception.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from horolog.domain.schedule import Cron, Fold, Gap, zone_names
from horolog.domain.schedule.clock_changes import ClockChanges, clock_changes, tables_from
from horolog.domain.schedule.zone_data import zone, zone_bytes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FIXED = {
    "30 2 * * *": (range(30, 31), range(2, 3)),
    "0,20,40 0,1,2,3,23 * * *": (range(0, 60, 20), (0, 1, 2, 3, 23)),
    "5-55/10 0-23 * * *": (range(5, 60, 10), range(24)),
}
STARRED = {
    "*/15 * * * *": (range(0, 60, 15), range(24)),
    "30 * * * *": (range(30, 31), range(24)),
    "*/20 1-3 * * *": (range(0, 60, 20), range(1, 4)),
}


@cache
def distinct_zones() -> tuple[str, ...]:
    """One name for each different zone: links and copies say nothing new."""
    by_content = {zone_bytes(name): name for name in sorted(zone_names(), reverse=True)}
    return tuple(sorted(by_content.values()))


def shifts(name: str, since: datetime, until: datetime) -> list[datetime]:
    """Instants at which the offset changes, found by asking zoneinfo every twelve hours."""
    found: list[datetime] = []
    here = zone(name)
    step = timedelta(hours=12)
    at, offset = since, since.astimezone(here).utcoffset()
    while at < until:
        following = (at + step).astimezone(here).utcoffset()
        if following != offset:
            found.append(first_instant(lambda u: u.astimezone(here).utcoffset(), at, at + step))
        at, offset = at + step, following
    return found


def first_instant(value: Callable[[datetime], object], low: datetime, high: datetime) -> datetime:
    """The first whole second in (low, high] at which ``value`` is what it is at ``high``."""
    wanted = value(high)
    while high - low > SECOND:
        middle = low + timedelta(seconds=(high - low) // SECOND // 2)
        low, high = (low, middle) if value(middle) == wanted else (middle, high)
    return high


def instants_of(local: datetime, here: ZoneInfo) -> list[datetime]:
    both = {local.replace(tzinfo=here, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(u for u in both if u.astimezone(here).replace(tzinfo=None, fold=0) == local)


def gap_end(local: datetime, here: ZoneInfo) -> datetime:
    early, late = sorted(local.replace(tzinfo=here, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first_instant(lambda u: u.astimezone(here).utcoffset(), early, late)


def nominal_times(
    minutes: Iterable[int], hours: Iterable[int], since: datetime, until: datetime
) -> Iterator[datetime]:
    day = since.date() - timedelta(1)
    while day <= until.date() + timedelta(1):
        for hour, minute in product(hours, minutes):
            yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - local
        day += timedelta(1)


@dataclass
class Shown:
    """A local time: its instants in order, or the end of its gap and where it would be shifted."""

    instants: list[datetime]
    gap_end: datetime | None
    shifted: datetime


def shown(local: datetime, here: ZoneInfo) -> Shown:
    instants = instants_of(local, here)
    return Shown(
        instants,
        None if instants else gap_end(local, here),
        local.replace(tzinfo=here, fold=0).astimezone(UTC),
    )


def expected_fixed(times: list[Shown], gap: Gap, fold: Fold) -> Iterator[datetime]:
    for time in times:
        if time.gap_end is None:
            yield from {
                "first": time.instants[:1],
                "second": time.instants[-1:],
                "both": time.instants,
            }[fold]
        elif gap == "run_after_gap":
            yield time.gap_end
        elif gap == "shift_forward":
            yield time.shifted


def inside(fires: Iterable[datetime], since: datetime, until: datetime) -> list[datetime]:
    return sorted({fire for fire in fires if since < fire <= until})


def expected_starred(
    minutes: Iterable[int], hours: Iterable[int], here: ZoneInfo, since: datetime, until: datetime
) -> list[datetime]:
    locals_ = nominal_times(minutes, hours, since, until)
    return inside((u for local in locals_ for u in instants_of(local, here)), since, until)


def given(schedule: Cron, since: datetime, until: datetime) -> list[datetime]:
    return [fire.at for fire in schedule.between(since, until)]


def windows(name: str) -> list[tuple[datetime, datetime]]:
    """Three days around the shifts of a year ahead, and around some of the last century."""
    ahead = shifts(name, datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
    starts = clock_changes(name, 0).starts[1:]
    past = [EPOCH + timedelta(seconds=start) for start in starts if start < 1_767_225_600]
    chosen = [*ahead[:4], *past[:1], *past[len(past) // 2 :][:1], *past[-1:]]
    half = timedelta(hours=27)
    return [(shift - half, shift + half) for shift in dict.fromkeys(chosen)]


@pytest.mark.parametrize("part", range(6))
def test_fixed_times_around_every_kind_of_shift(part: int) -> None:
    choices: list[tuple[Gap, Fold]] = [
        ("run_after_gap", "first"),
        ("skip", "both"),
        ("shift_forward", "second"),
    ]
    for name in distinct_zones()[part::6]:
        here = zone(name)
        for since, until in windows(name):
            for expression, (minutes, hours) in FIXED.items():
                locals_ = nominal_times(minutes, hours, since, until)
                times = [shown(local, here) for local in locals_]
                for gap, fold in choices:
                    expected = inside(expected_fixed(times, gap, fold), since, until)
                    assert given(Cron(expression, name, gap, fold), since, until) == expected, (
                        f"{expression!r} in {name} with {gap}, {fold}, from {since}"
                    )


@pytest.mark.parametrize("part", range(3))
def test_starred_expressions_follow_the_clock_as_it_is_shown(part: int) -> None:
    for name in distinct_zones()[part::3]:
        for since, until in windows(name)[-3:]:
            for expression, (minutes, hours) in STARRED.items():
                wanted = expected_starred(minutes, hours, zone(name), since, until)
                assert given(Cron(expression, name), since, until) == wanted, (
                    f"{expression!r} in {name} from {since}"
                )


def test_offsets_are_those_of_zoneinfo_in_all_zones_and_times() -> None:
    for name in distinct_zones():
        changes = clock_changes(name, 0)
        middays = [
            int(datetime(year, month, 1, 12, tzinfo=UTC).timestamp())
            for year in (1800, 1900, 1950, 2026, 2050, 2099)
            for month in (1, 7)
        ]
        compare_offsets(name, changes, {*middays, *around(changes.starts[1:])})


@pytest.mark.parametrize("name", ["Europe/Berlin", "Europe/Dublin", "America/Nuuk", "Asia/Gaza"])
def test_offsets_are_those_of_zoneinfo_to_the_end_of_the_calendar(name: str) -> None:
    ends: list[int] = []
    for table in tables_from(name, int(datetime(2099, 1, 1, tzinfo=UTC).timestamp())):
        ends.append(table.end)
        probes = {table.start, table.end - 1, *around(table.starts[1:])}
        compare_offsets(name, table, {at for at in probes if at >= table.start})
    assert len(ends) == 80


def around(starts: list[int]) -> Iterator[int]:
    return (at for start in starts for at in (start - 1, start))


def compare_offsets(name: str, changes: ClockChanges, probes: set[int]) -> None:
    here = zone(name)
    for at in sorted(probes):
        theirs = (EPOCH + timedelta(seconds=at)).astimezone(here).utcoffset()
        ours = changes.stretches[changes.index_at(at)].offset
        assert theirs == timedelta(seconds=ours), f"{name} at {at}"


def test_a_fixed_daily_time_fires_once_per_date_in_every_zone() -> None:
    since, until = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 2, tzinfo=UTC)
    for name in distinct_zones():
        fires = Cron("30 2 * * *", name).between(since, until)
        days = [fire.nominal.date().toordinal() for fire in fires]
        assert days == list(range(days[0], days[0] + len(days))), name
        assert len(days) >= 365, name
