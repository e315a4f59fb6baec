"""What a job does when its next fire time has come: claim it, drop it, wait, and move on.

After an outage many fire times may be due. ``catch_up`` decides which of them still run; what it
drops becomes one event for the whole range, never silence. The next fire time is always computed
from the nominal one, never from now, so lateness does not pile up.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from horolog.domain.job import JobState
from horolog.domain.job_events import SkipCause

MISFIRE_GRACE = timedelta(seconds=30)
"""Lateness up to this is ordinary (a takeover, a busy moment): everything due still runs."""

MAX_STEP = 500
"""The most fire times that one decision looks at: a long backlog takes several, each bounded."""

MAX_CLAIMS = 100
"""The most occurrences of one job that one decision claims."""


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """Consecutive fire times that are dropped for one cause; ``fires`` counts up to its last."""

    first: datetime
    last: datetime
    count: int
    cause: SkipCause
    next_fire: datetime | None
    fires: int


@dataclass(frozen=True, slots=True)
class Fire:
    """A fire time to be claimed, what follows it, and how many the schedule has then used up."""

    at: datetime
    next_fire: datetime | None
    fires: int


@dataclass(frozen=True, slots=True)
class FirePlan:
    """What to do now, in the order of time. Empty and ``wait`` means: look again a little later."""

    skipped: list[SkippedRange] = field(default_factory=list[SkippedRange])
    fires: list[Fire] = field(default_factory=list[Fire])
    wait: bool = False


def plan_fires(job: JobState, *, now: datetime, unfinished: int) -> FirePlan:
    """The plan for a job whose ``next_fire`` is due at ``now``, with ``unfinished`` runs open.

    At most ``MAX_STEP`` fire times are looked at; where more are due the plan ends early and the
    job is still due afterwards.
    """
    assert job.next_fire is not None
    assert job.next_fire <= now
    due, more = _due_fires(job, now)
    wanted, cause = _caught_up(job, due, now, more=more)
    match job.definition.overlap:
        case "allow":
            return _plan(due, wanted, wanted[:MAX_CLAIMS], cause)
        case "skip" if unfinished:
            return _plan(due, [], [], "overlap")
        case "buffer_one" if unfinished:
            return FirePlan(wait=True)
        case "skip":
            return _plan(due, wanted, wanted[:1], cause)
        case "buffer_one":
            return _plan(due, wanted[-1:], wanted[-1:], cause)


def _due_fires(job: JobState, now: datetime) -> tuple[list[Fire], bool]:
    """The fire times that are due, oldest first and bounded, and whether there are more."""
    schedule = job.definition.parsed_schedule()
    due: list[Fire] = []
    at, count = job.next_fire, job.fires
    while at is not None and at <= now and len(due) < MAX_STEP:
        count += 1
        exhausted = schedule.limit is not None and count >= schedule.limit
        following = None if exhausted else schedule.next_after(at)
        next_at = None if following is None else following.at
        due.append(Fire(at, next_at, count))
        at = next_at
    return due, at is not None and at <= now


def _caught_up(
    job: JobState, due: list[Fire], now: datetime, *, more: bool
) -> tuple[list[Fire], SkipCause]:
    """Which of the due fire times the catch-up policy still runs, and why the others do not."""
    definition = job.definition
    oldest = now - timedelta(seconds=definition.catch_up_window)
    if due[0].at >= now - MISFIRE_GRACE:
        return due, "misfire"
    match definition.catch_up:
        case "all":
            return [fire for fire in due if fire.at >= oldest], "misfire"
        case "skip":
            return [fire for fire in due if fire.at >= now - MISFIRE_GRACE], "misfire"
        case "latest":
            kept = [] if more else [fire for fire in due[-1:] if fire.at >= oldest]
            return kept, "superseded" if kept or more else "misfire"


def _plan(
    due: list[Fire], wanted: list[Fire], now_claimed: list[Fire], cause: SkipCause
) -> FirePlan:
    """Claims and dropped ranges in order; what is wanted but not claimed yet stays due."""
    plan = FirePlan()
    keep, claim = set(wanted), set(now_claimed)
    dropped: list[Fire] = []
    for fire in due:
        if fire not in keep:
            dropped.append(fire)
            continue
        if fire not in claim:
            break
        _close(plan, dropped, cause)
        plan.fires.append(fire)
    _close(plan, dropped, cause)
    return plan


def _close(plan: FirePlan, dropped: list[Fire], cause: SkipCause) -> None:
    if dropped:
        first, last = dropped[0], dropped[-1]
        plan.skipped.append(
            SkippedRange(first.at, last.at, len(dropped), cause, last.next_fire, last.fires)
        )
        dropped.clear()
