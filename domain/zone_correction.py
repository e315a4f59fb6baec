"""What new zone data does to a job's next fire time, and the correction of it.

Countries change their clocks, sometimes with a few days' notice. A job's next fire time was
computed with the zone data of its day and waits in the index; every later one is computed when its
time comes. So one fire time of a job may be wrong, and this says which it should be. Nothing that
was recorded is reinterpreted: the correction is an event of its own.
"""

from collections import deque
from datetime import datetime, timedelta

from horolog.domain.job import JobState
from horolog.domain.job_events import Completed, JobEvent, ZoneDataChanged
from horolog.domain.origin import Origin
from horolog.domain.schedule import Schedule, tzdata_version

FURTHEST = timedelta(hours=26)
"""No change of a zone's rules moves a local time by more than a day and a little."""

_TICK = timedelta(microseconds=1)


def corrected_fire(
    schedule: Schedule, recorded: datetime, last: datetime | None = None
) -> datetime | None:
    """The fire time, by the present zone data, that ``recorded`` was meant to be.

    ``recorded`` itself where the schedule has it; else the nearest one, for the local time is what
    its author stated, and it has moved. ``last`` is the fire time that was used up before: nothing
    from then or earlier is taken. ``None`` where the schedule has nothing left.
    """
    at_or_after = schedule.next_after(recorded - _TICK)
    if at_or_after is not None and at_or_after.at == recorded:
        return recorded
    floor = recorded - FURTHEST if last is None else max(last, recorded - FURTHEST)
    before = deque(schedule.between(floor, recorded), maxlen=1)
    if not before:
        return None if at_or_after is None else at_or_after.at
    if at_or_after is None or recorded - before[0].at < at_or_after.at - recorded:
        return before[0].at
    return at_or_after.at


def decide_zone_correction(
    state: JobState, *, last: datetime | None, origin: Origin
) -> list[JobEvent]:
    """The correction of a job's next fire time; none where it is right, or there is none."""
    if state.next_fire is None or state.status not in ("active", "paused"):
        return []
    fire = corrected_fire(state.definition.parsed_schedule(), state.next_fire, last)
    if fire == state.next_fire:
        return []
    changed = ZoneDataChanged(next_fire=fire, tzdata=tzdata_version(), **origin.fields())
    return [changed] if fire is not None else [changed, Completed(**origin.fields())]
