"""What a job does when its next fire time has come: claim it, drop it, wait, and move on.

After an outage many fire times may be due. ``catch_up`` decides which of them still run; what it
drops becomes one event for the whole range, never silence. The next fire time is always computed
from the nominal one, never from now, so lateness does not pile up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from horolog.domain.due_fires import (
    Fire,
    SkippedRange,
    due_at,
    due_fires,
    skipped_range,
    skipped_until,
)
from horolog.domain.job import JobState
from horolog.domain.job_events import SkipCause
from horolog.domain.record import record

MISFIRE_GRACE = timedelta(seconds=30)
"""Lateness up to this is ordinary (a takeover, a busy moment): everything due still runs."""

MAX_STEP = 500
"""The most fire times that one decision looks at: a long backlog takes several, each bounded."""

MAX_CLAIMS = 100
"""The most occurrences of one job that one decision claims."""

WAIT_S = 0.5
"""How soon a fire time that waits for the run before it is looked at again, in seconds."""


@dataclass(slots=True)
class FirePlan:
    """What to do now, in the order of time.

    ``again_after_s``: fire times are left that are due, and wanted so many seconds later.
    ``cancel_others``: the unfinished runs stand in the way, and are to be cancelled.
    """

    skipped: list[SkippedRange] = field(default_factory=list)
    fires: list[Fire] = field(default_factory=list)
    again_after_s: float | None = None
    cancel_others: bool = False

    @property
    def wait(self) -> bool:
        """Nothing is claimed or dropped now; look again later."""
        return not self.fires and not self.skipped


def plan_fires(
    job: JobState,
    *,
    now: datetime,
    unfinished: int,
    attended: datetime | None = None,
    most: int = MAX_CLAIMS,
) -> FirePlan:
    """The plan for a job whose ``next_fire`` is due at ``now``, with ``unfinished`` runs open.

    ``attended`` is when the leader last looked at the job while it was due: fire times that have
    waited since, for an earlier run to end, are not missed ones. At most ``MAX_STEP`` fire times
    are looked at, and ``most`` claimed; where more are due the job is still due afterwards.
    """
    assert job.next_fire is not None
    assert job.next_fire <= now
    schedule = job.definition.parsed_schedule()
    due = list(islice(due_fires(schedule, job.next_fire, job.fires, now), MAX_STEP))
    until = now
    if schedule.jitter and len(due) > 1 and _begin(job, due[-1]) > now:
        # Its jitter has not passed: it has its turn later, as if it were still ahead.
        due.pop()
        until = due[-1].at
    punctual = now - MISFIRE_GRACE
    begin = due_at(schedule, job.id, due[0].at)
    missed = begin < punctual and (attended is None or attended < punctual)
    if len(due) == 1 and not missed and begin >= _oldest(job, now) and not _waits(job, unfinished):
        # As nearly all are; what follows comes to the same.
        return FirePlan(fires=due)
    catch_up = _catch_up(job, due, now) if missed else _within_window(job, due, now)
    catch_up = catch_up.at_most(most)
    if not (missed and job.definition.catch_up == "earliest" and catch_up.fires):
        return _overlapping(job, due, catch_up, unfinished)
    earliest = catch_up.fires[0]
    plan = _overlapping(job, due[: due.index(earliest) + 1], catch_up, unfinished)
    if plan.fires and earliest.next_fire is not None:
        rest = skipped_until(schedule, earliest.next_fire, earliest.fires, until, "superseded")
        plan.skipped += [] if rest is None else [rest]
    return plan


@record
class _Wanted:
    """Which of the due fire times should run, why the others should not, and how many at once."""

    fires: list[Fire]
    cause: SkipCause
    at_once: int = MAX_CLAIMS
    again_after_s: float = 0.0

    def at_most(self, most: int) -> "_Wanted":
        """The same in smaller steps, at the same rate."""
        if most >= self.at_once:
            return self
        return replace(self, at_once=most, again_after_s=self.again_after_s * most / self.at_once)


def _waits(job: JobState, unfinished: int) -> bool:
    """Whether the overlap policy has something to say to a single fire time."""
    return unfinished > 0 and job.definition.overlap != "allow"


def _oldest(job: JobState, now: datetime) -> datetime:
    return now - timedelta(seconds=job.definition.catch_up_window)


def _within_window(job: JobState, due: list[Fire], now: datetime) -> _Wanted:
    oldest = _oldest(job, now)
    return _Wanted([fire for fire in due if _begin(job, fire) >= oldest], "misfire")


def _catch_up(job: JobState, due: list[Fire], now: datetime) -> _Wanted:
    """After an outage: what the catch-up policy still runs."""
    wanted = _within_window(job, due, now).fires
    match job.definition.catch_up:
        case "all":
            rate = job.definition.catch_up_rate
            at_once = min(MAX_CLAIMS, max(1, int(rate)))
            return _Wanted(wanted, "misfire", at_once, at_once / rate)
        case "skip":
            punctual = now - MISFIRE_GRACE
            return _Wanted([fire for fire in wanted if _begin(job, fire) >= punctual], "misfire")
        case "earliest":
            return _Wanted(wanted[:1], "misfire", 1)
        case "latest":
            last = due[-1]
            if last.next_fire is not None and last.next_fire <= now:
                return _Wanted([], "superseded")
            return _Wanted([f for f in wanted if f is last], "superseded" if wanted else "misfire")


def _begin(job: JobState, fire: Fire) -> datetime:
    """When the run of a fire time was meant to begin: lateness counts from there, not from before
    its jitter."""
    return due_at(job.definition.parsed_schedule(), job.id, fire.at)


def _overlapping(job: JobState, due: list[Fire], wanted: _Wanted, unfinished: int) -> FirePlan:
    """What of the wanted fire times is claimed now, given the runs that are still open."""
    fires = wanted.fires
    match job.definition.overlap:
        case "allow":
            plan = _plan(due, fires, fires[: wanted.at_once], wanted.cause)
            if len(fires) > wanted.at_once:
                plan.again_after_s = wanted.again_after_s
            return plan
        case "skip":
            if unfinished:
                return _plan(due, [], [], "overlap")
            return _plan(due, fires, fires[:1], wanted.cause)
        case "buffer_one":
            return _buffered(due, wanted, 1, unfinished)
        case "cancel_other":
            plan = _buffered(due, wanted, 1, unfinished)
            plan.cancel_others = bool(unfinished and fires)
            return plan
        case "buffer_all":
            return _buffered(due, wanted, job.definition.overlap_max, unfinished)


def _buffered(due: list[Fire], wanted: _Wanted, most: int, unfinished: int) -> FirePlan:
    """One run at a time; the fire times in the buffer wait in the index. Those that it has no room
    for give way: to the run that is open, or else to the later ones."""
    buffer = wanted.fires[-most:]
    no_room: SkipCause = "overlap" if unfinished else "superseded"
    causes: dict[int, SkipCause] = dict.fromkeys((fire.fires for fire in wanted.fires), no_room)
    plan = _plan(due, buffer, [] if unfinished else buffer[:1], wanted.cause, causes)
    if len(buffer) > len(plan.fires):
        plan.again_after_s = WAIT_S
    return plan


def _plan(
    due: list[Fire],
    wanted: list[Fire],
    now_claimed: list[Fire],
    cause: SkipCause,
    causes: Mapping[int, SkipCause] | None = None,
) -> FirePlan:
    """Claims and dropped ranges in order; what is wanted but not claimed yet stays due.

    Dropped is for ``cause``, or for another among the ``causes`` (by how many were used up).
    """
    plan = FirePlan()
    keep = {fire.fires for fire in wanted}
    claim = {fire.fires for fire in now_claimed}
    causes = causes or {}
    dropped: list[Fire] = []
    why = cause
    for fire in due:
        if fire.fires not in keep:
            its_cause = causes.get(fire.fires, cause)
            if its_cause != why:
                _close(plan, dropped, why)
                why = its_cause
            dropped.append(fire)
            continue
        if fire.fires not in claim:
            break
        _close(plan, dropped, why)
        plan.fires.append(fire)
    _close(plan, dropped, why)
    return plan


def _close(plan: FirePlan, dropped: list[Fire], cause: SkipCause) -> None:
    if dropped:
        plan.skipped.append(skipped_range(dropped, cause))
        dropped.clear()
