"""Each run ended, as its handler ended, with the payload of its claim and its effect once."""

from datetime import datetime
from typing import Any
from uuid import UUID

from tests.simulation.model.account import ENDS, Account, Event, Life
from tests.simulation.model.attempts import check_losses, check_retries


def check_run(account: Account, identity: UUID, life: Life) -> None:
    world = account.world
    if life.last not in ENDS:
        account.say(f"occurrence {identity} ends as {life.last}")
        return
    seen = world.witness.of(identity)
    attempts = [e.state["attempt"] for e in life.events if e.kind == "attempted"]
    for execution in seen:
        if execution.attempt not in attempts:
            account.say(f"attempt {execution.attempt} of {identity} ran, and the log has none")
            continue
        _check_payload(account, life, execution)
    for event in life.events:
        _check_outcome(account, identity, event, seen)
    check_retries(account, life, identity, seen)
    check_losses(account, life, identity)
    if life.last == "succeeded" and life.kind != "ordered":
        name = account.jobs[life.job].spec["name"]
        if name.startswith("transactional") and world.witness.effects[identity] != 1:
            count = world.witness.effects[identity]
            account.say(f"{identity} succeeded, and its effect was committed {count} times")
    elif world.witness.effects[identity]:
        account.say(f"the effect of {identity} was committed, and it is {life.last}")


def _check_payload(account: Account, life: Life, execution: Any) -> None:
    """A run has the payload that its job had when it was claimed."""
    claims = [
        e for e in life.events if e.kind == "claimed" and e.state["attempt"] == execution.attempt
    ]
    job = account.jobs.get(life.job)
    if not claims or job is None or life.kind == "backfill":
        return
    last = max(claims, key=lambda e: e.position)
    n = [n for position, n in job.payloads if position < last.position][-1]
    if execution.payload.get("n", 0) != n:
        account.say(
            f"attempt {execution.attempt} of {execution.occurrence} ran with"
            f" {execution.payload}, where its claim has n={n}"
        )
    begun = next(
        e for e in life.events if e.kind == "attempted" and e.state["attempt"] == execution.attempt
    )
    # Who was told that the job is changed sees it begin as it was no more.
    mine = max(p for p, one in job.payloads if one == n and p < last.position)
    for position, told in _told_of_updates(account, life.job):
        if told < begun.at and mine < position:
            account.say(
                f"attempt {execution.attempt} of {execution.occurrence} began at {begun.at}"
                f" with n={n}, though the job was changed, which was told at {told}"
            )


def _told_of_updates(account: Account, identity: UUID) -> list[tuple[int, datetime]]:
    """Where in the log payloads were changed, and when whoever did it was told."""
    return [
        (event.position, order.ended)
        for order in account.world.orders
        if order.action.kind == "update"
        and order.answer == "done"
        and "given" not in order.action.what
        and order.ended is not None
        for event in account.changes.get(identity, ())
        if event.state["payload"]["n"] == order.action.what["n"]
        and order.began <= event.at <= order.ended
    ]


def _check_outcome(account: Account, identity: UUID, event: Event, seen: Any) -> None:
    attempt = event.state.get("attempt")
    execution = next((e for e in seen if e.attempt == attempt), None)
    name = account.jobs[account.lives[identity].job].spec["name"] if seen else ""
    match event.kind:
        case "succeeded":
            if event.state.get("reason") == "reconciled":
                if not account.world.witness.did(identity):
                    account.say(f"{identity} was reconciled as done, and nothing had done it")
            elif execution is None or execution.outcome != "returned":
                what = "never ran" if execution is None else execution.outcome or "never ended"
                account.say(f"attempt {attempt} of {identity} succeeded, and its handler {what}")
            elif _overran(account, identity, execution):
                account.say(f"attempt {attempt} of {identity} succeeded after its timeout")
            elif event.state.get("result") != execution.result:
                account.say(f"attempt {attempt} of {identity} has another handler's result")
        case "failed":
            hopeless = event.state["kind"] in ("permanent", "argument")
            if hopeless and event.state.get("retry_at") is not None:
                account.say(f"attempt {attempt} of {identity} is hopeless, and is tried again")
            returned = execution is not None and execution.outcome == "returned"
            timed_out = event.state["kind"] in ("timeout", "transport")
            if returned and not timed_out and name not in ("deaf", "blocking"):
                account.say(f"attempt {attempt} of {identity} failed, and its handler returned")
        case _:
            pass


def _overran(account: Account, identity: UUID, execution: Any) -> bool:
    """Whether it was given more time than its job allows, by a process that never stood."""
    timeout = account.jobs[account.lives[identity].job].spec["policies"].get("timeout")
    began, ended = execution.began, execution.ended
    if timeout is None or any(began <= at <= ended for at in execution.process.troubled_at):
        return False
    grace_s = account.world.plan.worker_settings.cancel_grace_s
    return execution.ended - execution.began > timeout + grace_s + 1.0
