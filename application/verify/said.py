"""What a schedule says today, for comparison with what an event said when it was recorded.

What was computed with other zone data than today's cannot be computed again, unless the schedule
looks at no zone; then there is no answer, and nothing to compare.
"""

import json
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from horolog.domain.job import first_fire
from horolog.domain.schedule import Schedule, schedule_from_json, tzdata_version

TICK = timedelta(microseconds=1)


class Said:
    """A schedule's answers; those of one event, which was computed with ``tzdata``."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    @staticmethod
    def by(schedule: str, tzdata: str) -> "Said | None":
        """``schedule`` is the text of the JSON form, as :func:`kept` gives it."""
        return _said(schedule, tzdata)

    def has(self, fire: datetime) -> bool:
        """Whether it is a fire time."""
        return self.after(fire - TICK) == fire

    def after(self, instant: datetime) -> datetime | None:
        fire = self._schedule.next_after(instant)
        return None if fire is None else fire.at

    def following(self, last: datetime, fires: int) -> datetime | None:
        """What comes after ``last``, the ``fires``-th fire time."""
        limit = self._schedule.limit
        return None if limit is not None and fires >= limit else self.after(last)

    def first_from(self, now: datetime) -> datetime | None:
        """What a job begins with that gets this schedule at ``now``."""
        return first_fire(self._schedule, now)

    def count(self, first: datetime, last: datetime) -> int:
        """How many fire times there are from ``first`` to ``last``, both included."""
        return sum(1 for _ in self._schedule.between(first - TICK, last))


def kept(schedule: dict[str, Any]) -> str:
    """A schedule's JSON form as it is remembered: a few hundred bytes for each living job."""
    return json.dumps(schedule, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=16_384)
def _said(schedule: str, tzdata: str) -> Said | None:
    parsed = _parsed(schedule)
    return Said(parsed) if tzdata == tzdata_version() or parsed.clock_zone == "UTC" else None


@lru_cache(maxsize=16_384)
def _parsed(schedule: str) -> Schedule:
    return schedule_from_json(json.loads(schedule))
