"""The walk over fire times that have come due, and what a dropped range of them looks like."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby, islice
from uuid import UUID

from horolog.domain.ids import occurrence_id
from horolog.domain.job_events import FiresSkipped, SkipCause
from horolog.domain.origin import Origin
from horolog.domain.record import record
from horolog.domain.schedule import Calendar, Cron, Schedule, Union, jittered, tzdata_version
from horolog.domain.schedule.omission import Omission, OmissionReason

MAX_COUNTED = 100_000
"""The most fire times that are walked one by one to be dropped; a longer range is not counted."""


_CAUSES: dict[OmissionReason, SkipCause] = {
    "gap": "gap",
    "excluded": "calendar",
    "holiday": "calendar",
}


@record
class Fire:
    """A fire time, what follows it, and how many the schedule has used up with it."""

    at: datetime
    next_fire: datetime | None
    fires: int


@record
class SkippedRange:
    """Consecutive fire times that are dropped for one cause; ``fires`` counts up to its last.

    ``count`` is ``None`` for a range that is too long to be counted.
    """

    first: datetime
    last: datetime
    count: int | None
    cause: SkipCause
    next_fire: datetime | None
    fires: int

    def event(self, origin: Origin) -> FiresSkipped:
        return FiresSkipped(
            first=self.first,
            last=self.last,
            count=self.count,
            cause=self.cause,
            next_fire=self.next_fire,
            fires=self.fires,
            tzdata=tzdata_version(),
            **origin.fields(),
        )


def due_fires(
    schedule: Schedule, next_fire: datetime | None, fires: int, until: datetime
) -> Iterator[Fire]:
    """The fire times from ``next_fire`` to ``until`` inclusive, oldest first.

    ``fires`` is how many were used up before; the schedule ends where its limit is reached.
    """
    at = next_fire
    while at is not None and at <= until:
        fires += 1
        exhausted = schedule.limit is not None and fires >= schedule.limit
        following = None if exhausted else schedule.next_after(at)
        next_at = None if following is None else following.at
        yield Fire(at, next_at, fires)
        at = next_at


def due_at(schedule: Schedule, job_id: UUID, fire: datetime) -> datetime:
    """When the occurrence of a fire time is meant to begin: later by its jitter, if it has any."""
    if not schedule.jitter:
        return fire
    following = schedule.next_after(fire)
    identity = occurrence_id(job_id, fire)
    return jittered(schedule.jitter, identity, fire, None if following is None else following.at)


def leaves_out(schedule: Schedule) -> bool:
    """Whether the schedule may state fire times that it does not keep."""
    if schedule.exclude or schedule.holidays is not None:
        return True
    match schedule:
        case Cron() | Calendar():
            return schedule.gap == "skip"
        case Union():
            return any(leaves_out(member) for member in schedule.schedules)
        case _:
            return False


def omitted_ranges(schedule: Schedule, after: datetime, last: Fire) -> list[SkippedRange]:
    """What the schedule leaves out between ``after`` and the fire time that follows ``last``.

    Neighbours of one cause make one range. These do not count among the fire times used up.
    """
    if last.next_fire is None or not leaves_out(schedule):
        return []
    omissions = islice(schedule.omitted(after, last.next_fire), MAX_COUNTED)
    ranges: list[SkippedRange] = []
    for cause, group in groupby(omissions, _cause):
        times = [omission.at for omission in group]
        ranges.append(
            SkippedRange(times[0], times[-1], len(times), cause, last.next_fire, last.fires)
        )
    return ranges


def _cause(omission: Omission) -> SkipCause:
    return _CAUSES[omission.reason]


def skipped_range(dropped: Sequence[Fire], cause: SkipCause) -> SkippedRange:
    """The range that these consecutive fire times make."""
    first, last = dropped[0], dropped[-1]
    return SkippedRange(first.at, last.at, len(dropped), cause, last.next_fire, last.fires)


def skipped_until(
    schedule: Schedule, next_fire: datetime, fires: int, now: datetime, cause: SkipCause
) -> SkippedRange | None:
    """All fire times from ``next_fire`` to ``now``, dropped for one cause; ``None`` if none is.

    A year of a schedule that fires each second is not walked: past ``MAX_COUNTED`` fire times the
    range ends at ``now`` and has no count.
    """
    dropped: list[Fire] = []
    for fire in due_fires(schedule, next_fire, fires, now):
        dropped.append(fire)
        if len(dropped) == MAX_COUNTED:
            following = schedule.next_after(now)
            next_at = None if following is None else following.at
            return SkippedRange(next_fire, now, None, cause, next_at, fire.fires)
    return skipped_range(dropped, cause) if dropped else None
