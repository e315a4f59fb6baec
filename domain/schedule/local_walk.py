"""From nominal local times to instants: the step where clocks change, and the only place for it.

A schedule states local times; a zone shows each of them once, never (a gap) or twice (a fold). The
walk goes through the zone's stretches of constant offset, in order, so each fire time is later than
the one before whatever the zone did, and never looks at minutes that do not fire.

- A fixed time inside a gap runs at the first instant after it (``run_after_gap``), not at all
  (``skip``) or later by the length of the gap (``shift_forward``).
- A fixed time inside a fold runs in the ``first`` pass, the ``second``, or ``both``.
- Elapsed rules (cron expressions with a star in the minute or the hour) follow the clock as it is
  shown: both passes of a fold, nothing in place of a gap.

The source of the default is cron(8) of Debian, for changes of any size.
"""

from collections.abc import Generator, Iterator
from heapq import merge
from itertools import islice, takewhile
from typing import Literal, NamedTuple, Protocol

from horolog.domain.schedule.clock_changes import (
    LAST_S,
    ClockChanges,
    Stretch,
    tables_from,
)

Gap = Literal["run_after_gap", "skip", "shift_forward"]
Fold = Literal["first", "second", "both"]
Change = Literal["", "after_gap", "shifted", "first", "second"]
"""What a clock change did to a fire time; empty for nothing."""


class NominalTimes(Protocol):
    """Local times, as seconds since 1970 on the local clock, in order."""

    def between(self, low: int, high: int) -> Iterator[int]:
        """Those in [low, high), increasing; the work between two of them is bounded."""
        ...


class Landing(NamedTuple):
    """A nominal local second, the UTC second that it came to, and why they may differ."""

    at: int
    nominal: int
    change: Change


class ClockRule(NamedTuple):
    """What to do where the clock changes; ``elapsed`` makes the other two irrelevant."""

    gap: Gap = "run_after_gap"
    fold: Fold = "first"
    elapsed: bool = False


def walk(times: NominalTimes, zone: str, after: int, rule: ClockRule) -> Iterator[Landing]:
    """Landings later than the UTC second ``after``, ordered by instant.

    Two landings may share an instant (a gap that swallowed a nominal time): the caller keeps one.
    """
    for changes in tables_from(zone, after + 1):
        going_on = yield from _walk(times, changes, max(after, changes.start - 1), rule)
        if not going_on:
            return


def skipped(
    times: NominalTimes, zone: str, after: int, until: int, rule: ClockRule
) -> Iterator[tuple[int, int]]:
    """(end of the gap, nominal second) of what ``gap="skip"`` leaves out in (after, until]."""
    if rule.elapsed or rule.gap != "skip":
        return
    for changes in takewhile(lambda table: table.start <= until, tables_from(zone, after + 1)):
        for stretch in changes.between(after, until):
            for nominal in times.between(*stretch.gap):
                yield stretch.start, nominal


def _walk(
    times: NominalTimes, changes: ClockChanges, after: int, rule: ClockRule
) -> Generator[Landing, None, bool]:
    """Walks through one table; returns whether there may be more after it."""
    stretches = changes.stretches
    index = changes.index_at(after + 1)
    while index < len(stretches):
        stretch = stretches[index]
        yield from _in_stretch(times, stretch, max(after + 1, stretch.start), rule, index > 0)
        upcoming = next(times.between(min(stretch.finish, stretch.again), LAST_S), None)
        if upcoming is None:
            return False
        index = _index_showing(changes, upcoming, index + 1)
    return True


def _index_showing(changes: ClockChanges, local: int, least: int) -> int:
    """The first stretch from ``least`` on that has not ended before the local second is shown."""
    stretches = changes.stretches
    index = max(least, changes.index_at(local - 2 * 86_400))
    while index < len(stretches) and stretches[index].finish <= local:
        index += 1
    return index


def _in_stretch(
    times: NominalTimes, stretch: Stretch, first: int, rule: ClockRule, changed: bool
) -> Iterator[Landing]:
    shown = _shown(times, stretch, first, rule)
    if rule.elapsed or rule.gap == "skip" or not changed:
        return shown
    low, high = stretch.gap
    if low >= high:
        return shown
    if rule.gap == "run_after_gap":
        if first > stretch.start:
            return shown
        landed = (Landing(first, nominal, "after_gap") for nominal in times.between(low, high))
        return merge(islice(landed, 1), shown, key=_instant)
    return merge(_shifted(times, stretch, first), shown, key=_instant)


def _instant(landing: Landing) -> int:
    return landing.at


def _shifted(times: NominalTimes, stretch: Stretch, first: int) -> Iterator[Landing]:
    low, high = stretch.gap
    for nominal in times.between(low, high):
        at = min(stretch.start + nominal - low, stretch.end - 1)
        if at >= first:
            yield Landing(at, nominal, "shifted")


def _shown(times: NominalTimes, stretch: Stretch, first: int, rule: ClockRule) -> Iterator[Landing]:
    """Nominal times that the clock shows in this stretch, in the passes that the rule takes."""
    offset = stretch.offset
    low = first + offset
    repeated_until = min(stretch.seen, stretch.finish)
    repeats_from = max(min(stretch.again, stretch.finish), repeated_until)
    if low < repeated_until and (rule.elapsed or rule.fold != "first"):
        for nominal in times.between(low, repeated_until):
            yield Landing(nominal - offset, nominal, "second")
    for nominal in times.between(max(low, repeated_until), repeats_from):
        yield Landing(nominal - offset, nominal, "")
    low = max(low, repeats_from)
    if low < stretch.finish and (rule.elapsed or rule.fold != "second"):
        for nominal in times.between(low, stretch.finish):
            yield Landing(nominal - offset, nominal, "first")
