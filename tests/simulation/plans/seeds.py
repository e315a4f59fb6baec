"""What a seed decides before anything happens: the settings, the jobs, the faults, the commands.

A plan is drawn from its seed alone.
"""

from typing import Any

from tests.simulation.plans.commands import ask_again, command, give
from tests.simulation.plans.draft import Draft
from tests.simulation.plans.focus import troubles_of
from tests.simulation.plans.jobs import register
from tests.simulation.plans.plan import Plan
from tests.simulation.plans.upkeep import follow, prune, rebuild


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    draft = Draft(seed)
    random = draft.random
    many = draft.focus in ("failover", "old leaders")
    for _ in range(random.randint(4, 7) if many else random.randint(2, 6)):
        register(draft, random.uniform(0.0, 20.0))
    for _ in range(random.randint(0, 3)):
        register(draft, draft.moment())
    kinds = troubles_of(draft)
    for _ in range(random.randint(3, 16) if kinds else 0):
        random.choice(kinds)(draft)
    for _ in range(random.randint(0, 12)):
        command(draft)
    give(draft)
    ask_again(draft)
    prune(draft)
    rebuild(draft)
    followers = follow(draft)
    bounds: dict[str, Any] = {}
    if random.random() < 0.2:
        bounds["max_messages"] = random.randint(2, 8)
    if random.random() < 0.2:
        bounds["max_ack_pending"] = random.randint(2, 8)
    return Plan(
        draft.seed,
        draft.tempo,
        draft.start,
        draft.units * draft.tempo,
        draft.scanners,
        draft.workers,
        draft.partitions,
        bounds,
        tuple(sorted(draft.actions, key=lambda action: action.at)),
        draft.focus,
        followers,
    )
