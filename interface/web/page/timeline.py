"""What is due next, as a picture: a row for each handler, a column for each stretch of time.

Bounded: some hundred entries of the index, and of the jobs that fire often some thousand fire times
in all. What lies beyond is said, not drawn.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from horolog.application.answers.index_entry import IndexEntry
from horolog.domain.errors import UnknownJob
from horolog.interface.scheduler import Scheduler

ENTRIES: Final = 300
EXPANDED: Final = 60
"""Jobs of which also the fire times after the next one are drawn: each costs a query."""
FIRES: Final = 6000
"""Fire times after the next ones, of all jobs together."""
LANES: Final = 14


@dataclass(slots=True)
class Lane:
    """A handler's fires, counted by column; ``first`` is the next of them."""

    name: str
    first: datetime
    jobs: int = 0
    counts: Counter[int] = field(default_factory=Counter[int])
    retries: Counter[int] = field(default_factory=Counter[int])

    @property
    def total(self) -> int:
        return self.counts.total()


@dataclass(frozen=True, slots=True)
class Timeline:
    """``complete`` is false where there is more than was looked at."""

    begin: datetime
    until: datetime
    columns: int
    lanes: Sequence[Lane]
    others: int
    overdue: int
    complete: bool
    entries: Sequence[IndexEntry]

    @property
    def column_s(self) -> float:
        return (self.until - self.begin).total_seconds() / self.columns

    def marks(self, count: int = 6) -> list[tuple[float, str]]:
        """Where time is written: shares of the width, and the time of day."""
        step = (self.until - self.begin) / count
        return [
            (number / count, (self.begin + number * step).strftime("%H:%M"))
            for number in range(count + 1)
        ]


def timeline(scheduler: Scheduler, now: datetime, span: timedelta, columns: int) -> Timeline:
    """What is due from ``now`` on, for ``span``."""
    until = now + span
    entries = scheduler.due_next(until, limit=ENTRIES)
    lanes: dict[str, Lane] = {}
    complete = len(entries) < ENTRIES
    expanded = overdue = 0
    left = FIRES
    for entry in entries:
        overdue += entry.due_at < now
        lane = lanes.setdefault(entry.name, Lane(entry.name, entry.due_at))
        lane.jobs += 1
        column = _column(entry.due_at, now, span, columns)
        lane.counts[column] += 1
        if entry.kind != "job":
            lane.retries[column] += 1
        elif expanded < EXPANDED and left > 1:
            expanded += 1
            drawn, all_of_it = _expand(scheduler, entry, lane, now, span, columns, left)
            left -= drawn
            complete &= all_of_it
        else:
            complete = False
    shown = sorted(lanes.values(), key=lambda lane: lane.first)
    return Timeline(
        now, until, columns, shown[:LANES], len(shown[LANES:]), overdue, complete, entries
    )


def _expand(
    scheduler: Scheduler,
    entry: IndexEntry,
    lane: Lane,
    now: datetime,
    span: timedelta,
    columns: int,
    most: int,
) -> tuple[int, bool]:
    """Counts the fire times after the entry's own: how many, and whether these were all."""
    # A job that fires often is asked for more than one that fires once a day.
    drawn, ask = 0, 8
    while True:
        ask = min(ask, most)
        try:
            fires = scheduler.upcoming(entry.job_id, ask)
        except UnknownJob:
            return drawn, True
        for fire in fires[1 + drawn :]:
            if fire.at >= now + span:
                return drawn, True
            lane.counts[_column(fire.at, now, span, columns)] += 1
            drawn += 1
        if len(fires) < ask:
            return drawn, True
        if ask == most:
            return drawn, False
        ask *= 16


def _column(at: datetime, now: datetime, span: timedelta, columns: int) -> int:
    return min(columns - 1, max(0, int((at - now) / span * columns)))
