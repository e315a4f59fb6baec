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

from horolog.domain.schedule.posix_rule import yearly_rule
from horolog.domain.schedule.zone_data import zone_bytes

FIRST_S = int(datetime(1, 1, 3, tzinfo=UTC).timestamp())
LAST_S = int(datetime(9999, 12, 29, tzinfo=UTC).timestamp())
"""The walk stays inside of these seconds, so that no local time leaves what ``datetime`` holds."""

NEAR_YEAR = 2100
"""Up to here a zone's changes are laid out when it is first used; beyond, on demand."""


class Stretch(NamedTuple):
    """[start, end) in UTC seconds under one offset, and what the local clock shows meanwhile.

    ``begin`` and ``finish`` are the same borders on the local clock. Local times before ``seen``
    have been shown earlier, those from ``again`` on will be shown later.
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
        return self.seen, min(self.begin, self.again)


class ClockChanges:
    """The stretches of one zone, in order, without a hole."""

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


def clock_changes(zone: str, instant: int) -> ClockChanges:
    """The changes of a zone around a UTC second and at least for 40 years after it."""
    near = instant < int(datetime(NEAR_YEAR - 40, 1, 1, tzinfo=UTC).timestamp())
    return _laid_out(zone, NEAR_YEAR if near else 9999)


def all_clock_changes(zone: str) -> ClockChanges:
    """The same up to the last year that ``datetime`` holds."""
    return _laid_out(zone, 9999)


@lru_cache(maxsize=1024)
def _laid_out(zone: str, last_year: int) -> ClockChanges:
    first_offset, changes = _changes(zone_bytes(zone), last_year)
    end = LAST_S if last_year == 9999 else int(datetime(last_year, 1, 1, tzinfo=UTC).timestamp())
    starts, offsets = [FIRST_S], [first_offset]
    for instant, offset in changes:
        if offset != offsets[-1] and starts[-1] < instant < end:
            starts.append(instant)
            offsets.append(offset)
    return ClockChanges(tuple(_stretches(starts, offsets, end)))


def _stretches(starts: list[int], offsets: list[int], end: int) -> Iterator[Stretch]:
    ends = [*starts[1:], end]
    begins = [start + offset for start, offset in zip(starts, offsets, strict=True)]
    finishes = [stop + offset for stop, offset in zip(ends, offsets, strict=True)]
    seen, again = [begins[0]], [finishes[-1]]
    for finish in finishes[:-1]:
        seen.append(max(seen[-1], finish))
    for begin in reversed(begins[1:]):
        again.append(min(again[-1], begin))
    again.reverse()
    return map(
        Stretch._make, zip(starts, ends, offsets, begins, finishes, seen, again, strict=True)
    )


def _changes(data: bytes, last_year: int) -> tuple[int, Iterator[tuple[int, int]]]:
    first_offset, listed, footer = _read_tzif(data)
    rule = yearly_rule(footer)
    if rule is None:
        return first_offset, iter(listed)
    last = listed[-1][0] if listed else FIRST_S
    first_year = max(1, datetime.fromtimestamp(max(last, 0), UTC).year) if listed else 1900
    by_rule = (
        change
        for year in range(first_year, min(last_year, 9998) + 1)
        for change in rule.changes(year)
        if change[0] > last
    )
    return first_offset, chain(listed, by_rule)


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
