"""No more runs at once than a job allows: its concurrency limit, and its overlap."""

from collections import defaultdict
from uuid import UUID

from tests.simulation.model.account import ENDS, Account


def check_limits(account: Account) -> None:
    """Never more slots than the limit, at any position of the log."""
    held: dict[str, set[UUID]] = defaultdict(set)
    for event in account.events:
        if account.about[event.position] != "occurrence":
            continue
        life = account.lives[event.stream]
        job = account.jobs.get(life.job)
        if job is None or (limit := job.spec["policies"].get("concurrency_limit")) is None:
            continue
        lane = job.spec["policies"].get("concurrency_key") or job.spec["key"]
        if event.kind in ("claimed", "attempted", "cancel_requested"):
            held[lane].add(event.stream)
        else:
            held[lane].discard(event.stream)
        if len(held[lane]) > limit:
            account.say(f"position {event.position}: {len(held[lane])} runs where {limit} may")


def check_overlaps(account: Account) -> None:
    """Where runs must not overlap, none is claimed while another one is open."""
    open_: dict[UUID, set[UUID]] = defaultdict(set)
    replayed: set[UUID] = set()
    for event in account.events:
        if account.about[event.position] != "occurrence":
            continue
        life = account.lives[event.stream]
        if event.kind == "replayed":
            # Nobody who claims the job's next fire time at this moment can know of it.
            replayed.add(life.job)
        if event.kind in ENDS:
            open_[life.job].discard(event.stream)
            continue
        job = account.jobs.get(life.job)
        first = event.kind == "claimed" and event.state.get("fires") is not None
        if (
            first
            and job is not None
            and job.spec["policies"]["overlap"] != "allow"
            and life.job not in replayed
            and open_[life.job]
        ):
            account.say(f"{event.stream} was claimed while {open_[life.job]} was open")
        open_[life.job].add(event.stream)
