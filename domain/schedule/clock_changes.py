"""A zone as stretches of constant offset, which is what a fire time has to be placed in.

``zoneinfo`` answers what the offset of one instant is. A schedule also needs to know when it
changes next, and which local times a change swallowed or repeated; that is computed here, once per
zone. ``gap`` and ``fold`` then hold for whole kinds of changes: of half an hour or a day, at
midnight, twice in a month, by odd seconds as before standard time.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from horolog.domain.schedule.posix_rule import YearlyRule, yearly_rule
from horolog.domain.schedule.zone_data import forget_with_release, zone_bytes

FIRST_S = int(datetime(1, 1, 3, tzinfo=UTC).timestamp())
LAST_S = int(datetime(9999, 12, 29, tzinfo=UTC).timestamp())
"""The walk stays inside of these seconds, so that no local time leaves what ``datetime`` holds."""

LISTED_UNTIL = 2100
"""A zone's first table ends with this year; after it, where only the yearly rule is left, each
century has a table of its own, made when somebody asks for it."""


class Stretch(NamedTuple):
    """[start, end) in UTC seconds under one offset, and what the local clock shows meanwhile.

    ``begin`` and ``finish`` are the same borders on the local clock. Local times before ``seen``
    were shown by the stretch before, those from ``again`` on will be shown by the next. No zone has
    ever undone a change before its gap or fold was over; a test watches that none begins to.
    """

    start: int
    end: int
    offset: int
    begin: int
    finish: int
    seen: int
    again: int

    @property
    def gap(self) -> tuple[int, int]:
        """The local times [from, to) that the change at ``start`` swallowed; none if from >= to."""
        return self.seen, self.begin


class ClockChanges:
    """The stretches of one zone over some centuries, in order, without a hole."""

    def __init__(self, stretches: tuple[Stretch, ...]):
        self.stretches = stretches
        self.starts = [stretch.start for stretch in stretches]

    def index_at(self, instant: int) -> int:
        """The number of the stretch that holds this UTC second."""
        return max(0, bisect_right(self.starts, instant) - 1)

    def between(self, after: int, until: int) -> list[Stretch]:
        """The stretches that begin later than ``after`` and not later than ``until``."""
        low, high = bisect_right(self.starts, after), bisect_right(self.starts, until)
        return list(self.stretches[low:high])

    @property
    def start(self) -> int:
        """The UTC second with which the table begins."""
        return self.stretches[0].start

    @property
    def end(self) -> int:
        """The UTC second before which the table ends."""
        return self.stretches[-1].end


def clock_changes(zone: str, instant: int) -> ClockChanges:
    """The table of a zone that holds a UTC second (the nearest, outside of the calendar)."""
    year = datetime.fromtimestamp(min(max(instant, FIRST_S), LAST_S - 1), UTC).year
    return _table(zone, max(year, LISTED_UNTIL - 1) // 100)


def tables_from(zone: str, instant: int) -> Iterator[ClockChanges]:
    """The tables of a zone from a UTC second to the end of the calendar, made one by one."""
    while instant < LAST_S:
        table = clock_changes(zone, instant)
        yield table
        instant = table.end


@lru_cache(maxsize=2048)
def _table(zone: str, century: int) -> ClockChanges:
    first_year, last_year = century * 100, century * 100 + 99
    listed = last_year < LISTED_UNTIL
    begin = FIRST_S if listed else _new_year(first_year)
    end = min(LAST_S, _new_year(last_year + 1)) if last_year < 9999 else LAST_S
    offset, changes = _changes(zone_bytes(zone), None if listed else first_year, last_year)
    starts, offsets = [begin], [offset]
    for instant, changed in changes:
        if changed != offsets[-1] and begin < instant < end:
            starts.append(instant)
            offsets.append(changed)
    return ClockChanges(tuple(_stretches(starts, offsets, end)))


forget_with_release(_table.cache_clear)


def _new_year(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def _stretches(starts: list[int], offsets: list[int], end: int) -> Iterator[Stretch]:
    ends = [*starts[1:], end]
    begins = [start + offset for start, offset in zip(starts, offsets, strict=True)]
    finishes = [stop + offset for stop, offset in zip(ends, offsets, strict=True)]
    seen, again = [begins[0], *finishes[:-1]], [*begins[1:], finishes[-1]]
    return map(
        Stretch._make, zip(starts, ends, offsets, begins, finishes, seen, again, strict=True)
    )


def _changes(
    data: bytes, first_year: int | None, last_year: int
) -> tuple[int, Iterator[tuple[int, int]]]:
    """(the offset to begin with, changes after that); from the beginning without a first year."""
    first_offset, listed, footer = _read_tzif(data)
    rule = yearly_rule(footer)
    last, last_offset = listed[-1] if listed else (FIRST_S, first_offset)
    if rule is None:
        return (first_offset, iter(listed)) if first_year is None else (last_offset, iter(()))
    if first_year is not None:
        before = list(rule.changes(first_year - 1))
        offset = before[-1][1] if before else rule.standard_s
        return offset, _by_rule(rule, first_year, last_year, last)
    since = datetime.fromtimestamp(last, UTC).year if listed else 1900
    return first_offset, chain(listed, _by_rule(rule, since, last_year, last))


def _by_rule(
    rule: YearlyRule, first_year: int, last_year: int, after: int
) -> Iterator[tuple[int, int]]:
    for year in range(first_year, min(last_year, 9998) + 1):
        yield from (change for change in rule.changes(year) if change[0] > after)


def _read_tzif(data: bytes) -> tuple[int, list[tuple[int, int]], str]:
    """(the offset before any change, listed changes, footer) of a TZif file, version 2 or newer."""
    _, counts = _header(data, 0)
    second = 44 + _block_size(counts, 4)
    version, (utc, std, leap, times, types, chars) = _header(data, second)
    if version < b"2":
        raise ValueError("TZif version 1 has no footer; the tzdata package is newer than that")
    at = second + 44
    instants = struct.unpack_from(f">{times}q", data, at)
    kinds = data[at + times * 8 : at + times * 9]
    offsets = [
        struct.unpack_from(">i", data, at + times * 9 + kind * 6)[0] for kind in range(types)
    ]
    footer = data[second + 44 + _block_size((utc, std, leap, times, types, chars), 8) :]
    listed = [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]
    return offsets[0], listed, footer.strip(b"\n").decode("ascii")


def _header(data: bytes, at: int) -> tuple[bytes, tuple[int, ...]]:
    if data[at : at + 4] != b"TZif":
        raise ValueError("not a TZif file")
    return data[at + 4 : at + 5], struct.unpack_from(">6l", data, at + 20)


def _block_size(counts: tuple[int, ...], time_size: int) -> int:
    utc, std, leap, times, types, chars = counts
    return times * (time_size + 1) + types * 6 + chars + leap * (time_size + 4) + std + utc
