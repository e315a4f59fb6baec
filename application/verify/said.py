"""What a schedule says today, for comparison with what an event said when it was recorded.

What was computed with other zone data than today's cannot be computed again, unless the schedule
looks at no zone; then there is no answer, and nothing to compare.

Nearly all claims of a log are of intervals and of single instants. These are computed here, from
what is stated, and not by the domain's walk through a calendar: that is several times quicker, and
takes no word from the code that decided on the claims. All other schedules ask the domain.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from typing_extensions import override

from horolog.domain.job import ONE_OFF_GRACE, first_fire
from horolog.domain.schedule import FireTime, Schedule, schedule_from_json, tzdata_version
from horolog.domain.schedule.every import LONGEST_S, SHORTEST_S
from horolog.domain.schedule.fire_time import CALENDAR_BEGIN, CALENDAR_END

TICK: Final = timedelta(microseconds=1)

_OF_INTERVALS: Final = frozenset(
    {"kind", "seconds", "anchor", "zone", "start", "end", "limit", "jitter"}
)
_OF_INSTANTS: Final = frozenset({"kind", "at", "zone", "limit", "jitter"})


class Said(ABC):
    """A schedule's answers."""

    __slots__ = ("_limit",)

    def __init__(self, limit: int | None) -> None:
        self._limit = limit

    @abstractmethod
    def after(self, instant: datetime) -> datetime | None:
        """The first fire time later than ``instant``."""

    def has(self, fire: datetime) -> bool:
        """Whether it is a fire time."""
        return self.after(fire - TICK) == fire

    def following(self, last: datetime, fires: int) -> datetime | None:
        """What comes after ``last``, the ``fires``-th fire time."""
        return None if self._limit is not None and fires >= self._limit else self.after(last)

    def first_from(self, now: datetime) -> datetime | None:
        """What a job begins with that gets this schedule at ``now``."""
        return self.after(now)

    def count(self, first: datetime, last: datetime) -> int:
        """How many fire times there are from ``first`` to ``last``, both included."""
        fire, found = self.after(first - TICK), 0
        while fire is not None and fire <= last:
            fire, found = self.after(fire), found + 1
        return found


class Interval(Said):
    """Every so many seconds of elapsed time from an anchor on, which is a fire time itself."""

    __slots__ = ("_anchor", "_before", "_last", "_step")

    def __init__(
        self,
        anchor: datetime,
        step: timedelta,
        start: datetime,
        end: datetime,
        limit: int | None = None,
    ) -> None:
        super().__init__(limit)
        self._anchor = anchor
        self._step = step
        self._before = max(anchor, start) - TICK
        self._last = end

    @override
    def after(self, instant: datetime) -> datetime | None:
        instant = max(instant, self._before)
        if instant >= self._last:
            return None
        try:
            fire = self._anchor + ((instant - self._anchor) // self._step + 1) * self._step
        except OverflowError:  # past what a datetime can hold
            return None
        return fire if fire <= self._last else None

    @override
    def count(self, first: datetime, last: datetime) -> int:
        begin, until = max(first, self._before + TICK), min(last, self._last)
        if until < begin:
            return 0
        steps = (until - self._anchor) // self._step
        return steps - (begin - TICK - self._anchor) // self._step


class Instant(Said):
    """A single one."""

    __slots__ = ("_at",)

    def __init__(self, at: datetime, limit: int | None = None) -> None:
        super().__init__(limit)
        self._at = at

    @override
    def after(self, instant: datetime) -> datetime | None:
        return self._at if self._at > instant else None

    @override
    def first_from(self, now: datetime) -> datetime | None:
        return self.after(now - ONE_OFF_GRACE)


class Walked(Said):
    """Any schedule. Claims come in the order of fire times, so it is walked and not searched anew
    for each; and jobs of one schedule ask for the same fire time one after the other."""

    __slots__ = ("_answer", "_asked", "_schedule", "_walk")

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule.limit)
        self._schedule = schedule
        self._asked: datetime | None = None
        self._answer: datetime | None = None
        self._walk: Iterator[FireTime] = iter(())

    @override
    def after(self, instant: datetime) -> datetime | None:
        if instant == self._asked:
            return self._answer
        if instant != self._answer:
            self._walk = self._schedule.fires(instant)
        self._asked = self._answer = None  # a walk that fails is not gone on with
        fire = next(self._walk, None)
        self._asked, self._answer = instant, None if fire is None else fire.at
        return self._answer

    @override
    def first_from(self, now: datetime) -> datetime | None:
        return first_fire(self._schedule, now)


Kept = Said | str
"""A schedule as it is remembered for each living job, in a few hundred bytes: one that is quick to
compute, or the text of its JSON form, of which the last ones asked are parsed."""


def kept(schedule: dict[str, Any]) -> Kept:
    """How the schedule with that JSON form is remembered."""
    return (
        _interval(schedule)
        or _instant(schedule)
        or json.dumps(schedule, sort_keys=True, separators=(",", ":"))
    )


def said_by(schedule: Kept, tzdata: str) -> Said | None:
    """Its answers to an event that was computed with ``tzdata``."""
    return _walked(schedule, tzdata) if isinstance(schedule, str) else schedule


@lru_cache(maxsize=16_384)
def _walked(schedule: str, tzdata: str) -> Walked | None:
    parsed = _parsed(schedule)
    return Walked(parsed) if tzdata == tzdata_version() or parsed.clock_zone == "UTC" else None


@lru_cache(maxsize=16_384)
def _parsed(schedule: str) -> Schedule:
    return schedule_from_json(json.loads(schedule))


def _interval(stated: dict[str, Any]) -> Interval | None:
    if stated.get("kind") != "every" or not stated.keys() <= _OF_INTERVALS:
        return None
    seconds, limit = stated.get("seconds"), stated.get("limit")
    anchor = _moment(stated.get("anchor"))
    start = _moment(stated["start"]) if "start" in stated else CALENDAR_BEGIN
    end = _moment(stated["end"]) if "end" in stated else CALENDAR_END - TICK
    if anchor is None or start is None or end is None or not _is_limit(limit):
        return None
    if not isinstance(seconds, int | float) or not SHORTEST_S <= seconds <= LONGEST_S:
        return None
    return Interval(anchor, timedelta(seconds=seconds), start, end, limit)


def _instant(stated: dict[str, Any]) -> Instant | None:
    if stated.get("kind") != "once" or not stated.keys() <= _OF_INSTANTS:
        return None
    at, limit = _moment(stated.get("at")), stated.get("limit")
    return None if at is None or not _is_limit(limit) else Instant(at, limit)


def _is_limit(stated: object) -> bool:
    return stated is None or (isinstance(stated, int) and stated >= 1)


def _moment(stated: object) -> datetime | None:
    """An instant with its offset: a local time is the domain's to read."""
    if isinstance(stated, str):
        try:
            stated = datetime.fromisoformat(stated)
        except ValueError:
            return None
    if not isinstance(stated, datetime) or stated.tzinfo is None:
        return None
    return stated.astimezone(UTC) if 2 <= stated.year <= 9998 else None
