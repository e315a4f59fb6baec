"""Jobs of which nothing has succeeded for longer than they allow: said once for each time."""

from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from tests.simulation.model.account import CHANGING, Account, Event, Job


def _successes(account: Account, identity: UUID) -> list[datetime]:
    """When the job was registered, and when any run of it succeeded, in their order."""
    times = [e.at for e in account.events if e.stream == identity and e.kind == "registered"]
    for life in account.lives.values():
        if life.job == identity:
            times += [e.at for e in life.events if e.kind == "succeeded"]
    return sorted(times)


def check_silence(account: Account, event: Event, due: datetime) -> None:
    """Nothing of the job had succeeded for as long as it may, and nobody had paused it."""
    identity = UUID(event.state["job_id"])
    job = account.jobs[identity]
    within = timedelta(seconds=job.spec["policies"]["expect_success_by"])
    times = _successes(account, identity)
    kept = [at for at in times if due - within < at <= due]
    begins = set(times)
    if not any(at <= due for at in times[1:]):
        # What has left the log may have been a success: before the first that is known of, it
        # counts from where the log begins.
        begins.update(account.world.keeping.left_at)
    if kept or due - within not in begins:
        account.say(f"{event.stream} missed no success by {due}: there was one at {kept}")
    if any(since + CHANGING < event.at < until for since, until in job.held):
        account.say(f"{event.stream} missed a success by {due}, and its job was paused")


def check_successes(account: Account, identity: UUID, job: Job, soon: timedelta) -> None:
    """That nothing of a job has succeeded for too long is said, once for each time."""
    within_s = job.spec["policies"].get("expect_success_by")
    said = [
        datetime.fromisoformat(event.state["due"])
        for event in account.events
        if account.about[event.position] == "deadline"
        and event.state["deadline"] == "success"
        and event.state["job_id"] == str(identity)
    ]
    if len(said) != len(set(said)):
        account.say(f"that job {identity} misses a success was said twice: {said}")
    if within_s is None or account.troubled:
        return
    rested = account.world.rested_at
    assert rested is not None
    stated = (job.paused, job.cancelled, job.completed, rested)
    ended = min(at for at in stated if at is not None)
    times = _successes(account, identity)
    # A job that has ended is not expected to succeed, though it may when it is triggered again.
    spans = ((since, min(until, ended)) for since, until in pairwise([*times, ended]))
    for since, until in spans:
        within = timedelta(seconds=within_s)
        unpaused = not any(began < until and ended > since for began, ended in job.held)
        begins = [since]
        if since == times[0]:  # its registration: see check_silence
            left_at = account.world.keeping.left_at
            begins += [bound for bound, at in left_at.items() if at < until]
        due = max(begins) + within
        if until - due > soon and unpaused and not {at + within for at in begins} & {*said}:
            account.say(f"job {identity} had no success by {due}, and nobody said so")
