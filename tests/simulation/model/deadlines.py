"""Runs that began or ended later than they may: each is said, once, and nothing else is."""

from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID

from tests.simulation.model.account import ENDS, SLACK, Account, Event, Life
from tests.simulation.model.successes import check_silence, check_successes


def check_deadlines(account: Account) -> None:
    """What was late is said, once, and nothing else is."""
    said = Counter[tuple[UUID, str]]()
    for event in account.events:
        if account.about[event.position] == "deadline":
            _check_miss(account, event)
            run = event.state.get("occurrence_id")
            said[UUID(run or event.state["job_id"]), event.state["deadline"]] += 1
    soon = timedelta(seconds=80.0 * account.world.plan.tempo) + SLACK
    for identity, job in account.jobs.items():
        check_successes(account, identity, job, soon)
    # A lease, until somebody else leads, and two looks.
    seen = timedelta(seconds=50.0 * account.world.plan.tempo) + SLACK
    moves = _moves(account)
    for identity, life in account.lives.items():
        first = life.events[0]
        # Of fire times that wait only a job's next one is known to be due before its claim.
        known = life.fire
        if life.kind == "schedule":
            known = moves.get((life.job, life.fire), first.at)
        for kind, due, happened in _deadlines_of(account, life):
            if said[identity, kind] > 1:
                account.say(
                    f"that {identity} missed its {kind} was said {said[identity, kind]} times"
                )
            # Somebody leads and looks, but for scanners that are away or cannot ask.
            late = happened - max(due, known)
            if late > seen and not account.troubled and not said[identity, kind]:
                account.say(f"{identity} missed its {kind} at {due}, and nobody said so")


def _moves(account: Account) -> dict[tuple[UUID, datetime], datetime]:
    """Since when a fire time was the next one of its job."""
    instant = datetime.fromisoformat
    return {
        (UUID(event.state.get("job_id") or str(event.stream)), instant(fire)): event.at
        for event in account.events
        if account.about[event.position] in ("job", "occurrence")
        and (fire := event.state.get("next_fire"))
    }


def _check_miss(account: Account, event: Event) -> None:
    due, kind = datetime.fromisoformat(event.state["due"]), event.state["deadline"]
    if due > event.at:
        account.say(f"a {kind} deadline was missed at {due}, which was later than {event.at}")
    if kind == "success":
        check_silence(account, event, due)
        return
    life = account.lives.get(UUID(event.state["occurrence_id"]))
    if life is None or any(e.kind == "replayed" for e in life.events):
        return  # never claimed: skipped, or cancelled with its job
    for other, at, happened in _deadlines_of(account, life):
        if other == kind and happened <= due:
            account.say(f"{event.stream} missed no {kind} deadline: {at} was kept at {happened}")


def _deadlines_of(account: Account, life: Life) -> list[tuple[str, datetime, datetime]]:
    """Each deadline of a run, when it was, and when what it asks for happened."""
    job = account.jobs.get(life.job)
    if job is None or life.kind == "backfill":
        return []
    found: list[tuple[str, datetime, datetime]] = []
    for kind, field_, kinds in (
        ("start", "start_within", ENDS | {"attempted"}),
        ("finish", "finish_within", ENDS),
    ):
        within_s = job.spec["policies"].get(field_)
        happened = next((e.at for e in life.events if e.kind in kinds), None)
        if within_s is not None and happened is not None:
            found.append((kind, life.fire + timedelta(seconds=within_s), happened))
    return found
