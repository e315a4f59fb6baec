"""Why a fire time did not run: what the log says of it, and whether that is true."""

from datetime import datetime, timedelta
from uuid import UUID

from tests.simulation.model.account import CHANGING, ENDS, SLACK, Account, Era, Event, Job

GRACE = timedelta(seconds=30)
"""Lateness up to this is no missed fire time."""


def is_excused(account: Account, identity: UUID, job: Job, era: Era, fire: datetime) -> bool:
    """Whether what the log says about a fire time that did not run is true."""
    if fire >= era.until - CHANGING:
        return True  # it was due when the schedule was changed, or the job cancelled
    if job.paused is not None and fire >= job.paused - CHANGING:
        return True  # it is held by a pause that has not ended
    row = account.world.log.tables.jobs[identity]
    if job.paused is not None and row.held_fire is not None and fire >= row.held_fire:
        return may_wait(job)  # it had not had its turn yet when all jobs were paused
    if job.cancelled == era.until and fire > _last_turn(account, identity, job):
        return may_wait(job) or account.troubled  # it waited for its turn, and was cancelled
    for event in job.skipped:
        first = datetime.fromisoformat(event.state["first"])
        last = datetime.fromisoformat(event.state["last"])
        if first <= fire <= last and era.since <= event.at <= era.until:
            return _holds(account, job, event, fire)
    return False


def _last_turn(account: Account, identity: UUID, job: Job) -> datetime:
    """The last fire time of a job that was decided on."""
    claimed = [
        life.fire
        for life in account.lives.values()
        if life.job == identity and life.kind == "schedule"
    ]
    skipped = [datetime.fromisoformat(event.state["last"]) for event in job.skipped]
    return max([*claimed, *skipped], default=job.eras[0].since)


def _holds(account: Account, job: Job, event: Event, fire: datetime) -> bool:
    policies = job.spec["policies"]
    late = event.at - _oldest(account, event) > GRACE - timedelta(seconds=5)
    match event.state["cause"]:
        case "paused":
            # What was due before the pause and had not had its turn is dropped with it.
            waited = may_wait(job) or account.troubled
            held = list(job.held)
            if job.paused is not None and job.paused <= event.at:
                held.append((job.paused, event.at))  # it was changed, and never resumed
            return any(
                (since - CHANGING <= fire or waited) and fire <= until for since, until in held
            )
        case "superseded":
            # Something stands in for it, or its schedule was replaced.
            replaced = any(abs(era.since - event.at) <= CHANGING for era in job.eras[1:])
            caught_up = late and policies["catch_up"] in ("latest", "earliest")
            buffered = policies["overlap"] != "allow"
            return replaced or ((caught_up or buffered) and _stands_in(account, job, event))
        case "misfire":
            if event.at - fire > timedelta(seconds=policies["catch_up_window"]):
                return True
            return policies["catch_up"] == "skip" and event.at - fire > GRACE - SLACK
        case "overlap":
            return policies["overlap"] != "allow" and _was_unfinished(account, job, event)
        case _:
            return False


def _stands_in(account: Account, job: Job, event: Event) -> bool:
    """Whether another fire time of the job runs where a range was dropped: it was claimed in
    the same breath, is still due, or had not ended yet."""
    following = event.state.get("next_fire")
    if following is not None and datetime.fromisoformat(following) <= event.at:
        return True
    return any(
        life.job == event.stream and life.events[0].at == event.at
        for life in account.lives.values()
    ) or _was_unfinished(account, job, event)


def _oldest(account: Account, event: Event) -> datetime:
    """The first fire time of the job that was decided on in the same breath as a range."""
    first = datetime.fromisoformat(event.state["first"])
    claimed = (
        life.fire
        for life in account.lives.values()
        if life.job == event.stream and life.events[0].at == event.at
    )
    return min([first, *claimed])


def _was_unfinished(account: Account, job: Job, event: Event) -> bool:
    """Whether a run of the job was open a moment before the event."""
    for life in account.lives.values():
        if account.jobs.get(life.job) is not job:
            continue
        if life.events[0].position >= event.position:
            # Claimed in the same breath: what came before it gave way to it.
            if life.events[0].at == event.at:
                return True
            continue
        ended = [e for e in life.events if e.kind in ENDS]
        if not ended or ended[-1].at >= event.at - CHANGING:
            return True
    # One that was ordered and not begun is open too.
    return any(
        order.action.kind in ("trigger", "backfill", "replay") for order in account.world.orders
    )


def may_wait(job: Job) -> bool:
    """Whether what is due may have to wait for runs before it, for as long as that takes."""
    policies = job.spec["policies"]
    limited = policies.get("concurrency_limit") or policies.get("rate_limit")
    return bool(limited) or policies["overlap"] != "allow" or policies["catch_up"] == "all"


def reason(job: Job, fire: datetime) -> str:
    """What the log says of a fire time that did not run."""
    for event in job.skipped:
        first, last = (datetime.fromisoformat(event.state[name]) for name in ("first", "last"))
        if first <= fire <= last:
            policies = job.spec["policies"]
            return (
                f"{event.state['cause']!r}, said at {event.at}, is not true (overlap"
                f" {policies['overlap']}, catch_up {policies['catch_up']})"
            )
    return "nothing says why"
