"""What the user ordered and was told is so: runs, pauses, cancellations, requests."""

from collections import Counter
from uuid import UUID

from tests.simulation.model.account import CHANGING, Account


def check_orders(account: Account) -> None:
    """What the user was told is so: a trigger runs, a cancelled job does not."""
    for order in account.world.orders:
        if order.answer == "" and order.action.kind != "limit_queue":
            account.say(f"the order {order.action} was never answered")
        if order.answer != "done" or "given" in order.action.what:
            continue
        if order.action.kind == "trigger" and order.result is not None:
            _check_trigger(account, order.result.id)
        if (
            order.action.kind == "register"
            and order.result is not None
            and order.result.id not in account.jobs
        ):
            account.say(f"job {order.result.id} was registered, and the log does not know it")
    for identity, life in account.lives.items():
        job = account.jobs.get(life.job)
        if job is None or job.cancelled is None:
            continue
        for event in life.events:
            if event.kind in ("claimed", "attempted") and event.at > job.cancelled:
                account.say(f"{identity} was {event.kind} after its job had been cancelled")


def _check_trigger(account: Account, identity: UUID) -> None:
    if identity not in account.lives:
        account.say(f"the run {identity} was ordered, and nothing became of it")


def check_pauses(account: Account) -> None:
    """What a pause held back does not run, unless the user asked for it."""
    if any(o.action.what.get("catch_up") for o in account.world.orders):
        return
    for identity, life in account.lives.items():
        job = account.jobs.get(life.job)
        if job is None or life.kind != "schedule":
            continue
        for since, until in job.held:
            first = life.events[0]
            if since + CHANGING < life.fire < until - CHANGING and first.at > until:
                account.say(f"{identity} ran, whose fire time {life.fire} lay in a pause")


def check_requests(account: Account) -> None:
    """The same request is one run."""
    seen = Counter(
        (event.stream, event.state["request_id"])
        for event in account.events
        if event.kind == "triggered" and event.state.get("request_id")
    )
    for (job, request_id), count in seen.items():
        if count > 1:
            account.say(f"{request_id} of job {job} ordered {count} runs")


def check_index(account: Account) -> None:
    """What may fire is known to be due, and nothing else is: a scanner that is given rows which
    it must not claim reads them for ever."""
    runs = [row.run for row in account.world.log.tables.next_runs.values()]
    due = {run.job_id for run in runs if run.kind == "job"}
    for identity, job in account.jobs.items():
        if identity in due and (job.paused is not None or job.cancelled is not None):
            how = "paused" if job.cancelled is None else "cancelled"
            account.say(f"job {identity} is {how}, and its next fire time is in the index")
