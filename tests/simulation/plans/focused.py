"""Troubles that aim at one moment: the middle of a claim, of a takeover, of beginning a run."""

from typing import Any

from tests.simulation.plans.draft import Draft
from tests.simulation.plans.jobs import schedule_of


def change(draft: Draft) -> None:
    """Of a job that has just been claimed, and has not begun."""
    random = draft.random
    at = draft.due_moment()
    kind = random.choice(("update", "update", "update", "cancel", "pause", "reschedule"))
    what: dict[str, Any] = {"job": random.randrange(max(1, draft.jobs))}
    if kind == "update":
        what["n"] = random.randint(1, 1_000)
    if kind == "reschedule":
        what["schedule"] = schedule_of(draft, at)
    if kind == "pause":
        back = at + random.uniform(1.0, 60.0)
        draft.do(back, "resume", what={**what, "catch_up": False})
    draft.do(at + random.uniform(0.0, 1.5), kind, what=what)


def crash_leader(draft: Draft) -> None:
    after = draft.random.choice((0.0, 0.0, 30.0)) * draft.random.random()
    target = f"scanner-{draft.random.randrange(draft.scanners)}"
    amount = float(draft.random.randint(1, 40))
    draft.do(draft.moment(), "crash", target, seconds=after, amount=amount)


def queue_outage(draft: Draft) -> None:
    """About a moment at which something is due, and with it the end of a scanner."""
    random = draft.random
    due = draft.due_moment()
    before, after = random.uniform(0.0, 3.0), random.uniform(3.0, 30.0)
    draft.do(max(0.0, due - before), "queue_away", seconds=before + after)
    target = f"scanner-{random.randrange(draft.scanners)}"
    draft.do(due + random.uniform(0.0, after), "crash", target)


def freeze_leader(draft: Draft) -> None:
    """In the middle of a claim, until about the time when its lease ends."""
    random = draft.random
    at = draft.due_moment()
    target = f"scanner-{random.randrange(draft.scanners)}"
    seconds = random.uniform(6.0, 13.0)
    draft.do(at + random.uniform(0.0, 0.8), "freeze", target, seconds=seconds)


def freeze_worker(draft: Draft) -> None:
    """In the middle of beginning a run, until after its lease."""
    random = draft.random
    at = draft.due_moment()
    target = f"worker-{random.randrange(draft.workers)}"
    seconds = random.uniform(20.0, 60.0)
    draft.do(at + random.uniform(0.0, 1.5), "freeze", target, seconds=seconds)
