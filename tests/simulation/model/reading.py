"""The log read for what it claims to have happened: jobs and runs, each by its own events."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tests.simulation.model.account import Account, Era, Event, Job, Life


def read(account: Account) -> None:
    end = account.world.now() + timedelta(days=10_000)
    for event in account.events:
        match account.about[event.position]:
            case "job":
                _read_job(account, event, end)
            case "occurrence":
                _read_occurrence(account, event)
            case _:
                pass


def _read_job(account: Account, event: Event, end: datetime) -> None:
    if event.kind == "registered":
        spec = _spec(account, event.state["key"])
        job = account.jobs[event.stream] = Job(spec)
        job.eras.append(Era(spec["schedule"], _given_at(account, event) or event.at, end))
        job.payloads.append((event.position, 0))
        return
    job = account.jobs[event.stream]
    match event.kind:
        case "rescheduled":
            job.eras[-1].until = event.at
            job.eras.append(Era(_ordered_schedule(account, event), event.at, end))
        case "payload_changed":
            job.payloads.append((event.position, event.state["payload"]["n"]))
            account.changes[event.stream].append(event)
        case "paused":
            job.paused = event.at
        case "resumed" if job.paused is not None:
            job.held.append((job.paused, event.at))
            job.paused = None
        case "cancelled":
            job.cancelled = event.at
            job.eras[-1].until = event.at
        case "completed":
            job.completed = event.at
        case "fires_skipped":
            job.skipped.append(event)
        case _:
            pass


def _given_at(account: Account, event: Event) -> datetime | None:
    """When a client gave a registration in its transaction: its fire times begin there."""
    for entry in account.world.inbox.entries:
        if entry.document["correlation"] == event.state.get("correlation"):
            return datetime.fromisoformat(entry.document["given_at"])
    return None


def _read_occurrence(account: Account, event: Event) -> None:
    life = account.lives.get(event.stream)
    if life is None:
        if event.kind == "claimed":
            life = Life(
                UUID(event.state["job_id"]),
                datetime.fromisoformat(event.state["fire_time"]),
                event.state.get("kind", "schedule"),
            )
        else:
            # What was ordered and never claimed: skipped, with its job.
            life = Life(UUID(int=0), event.at, "ordered")
        account.lives[event.stream] = life
    life.events.append(event)


def _spec(account: Account, key: str) -> dict[str, Any]:
    return next(
        action.what["spec"]
        for action in account.world.plan.actions
        if action.kind == "register" and action.what["spec"]["key"] == key
    )


def _ordered_schedule(account: Account, event: Event) -> dict[str, Any]:
    """Which of the user's orders this was: the one whose instants it begins with."""
    stated = event.state["schedule"]
    for order in account.world.orders:
        if order.action.kind == "reschedule" and _same(order.action.what["schedule"], stated):
            return order.action.what["schedule"]
    account.say(f"job {event.stream} was rescheduled to {stated}, which nobody ordered")
    return {"kind": "once", "at": account.world.plan.start.isoformat()}


def _same(ordered: dict[str, Any], stated: dict[str, Any]) -> bool:
    if ordered["kind"] != stated["kind"]:
        return False
    match ordered["kind"]:
        case "once":
            return _instant(ordered["at"]) == _instant(stated["at"])
        case "every":
            return float(ordered["seconds"]) == float(stated["seconds"]) and _instant(
                ordered["anchor"]
            ) == _instant(stated["anchor"])
        case _:
            expression = f"{ordered['minutes']} {ordered['hours']} * * *"
            return (expression, ordered["zone"]) == (stated["expression"], stated["zone"])


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
