"""What the troubles of a plan are about: one thing alone, or everything at once."""

from collections.abc import Callable

from tests.simulation.plans.draft import Draft
from tests.simulation.plans.focused import (
    change,
    crash_leader,
    freeze_leader,
    freeze_worker,
    queue_outage,
)
from tests.simulation.plans.troubles import (
    all_away,
    clock,
    crash,
    freeze,
    full,
    loss,
    outage,
    queue_harm,
    slowness,
    stop,
)


def troubles_of(draft: Draft) -> list[Callable[[Draft], None]]:
    """What may befall the world, by what the plan's troubles are about."""
    match draft.focus:
        case "nothing":
            return []
        case "failover":
            return [crash_leader, crash_leader, queue_outage]
        case "old leaders":
            # So slow that a claim takes a while, and its successor's takeover too.
            seconds = draft.units
            draft.do(0.0, "slow_log", "scanner", seconds=seconds, amount=0.3 * draft.tempo)
            return [freeze_leader]
        case "old workers":
            seconds = draft.units
            draft.do(0.0, "slow_log", "worker", seconds=seconds, amount=0.3 * draft.tempo)
            return [freeze_worker]
        case "the queue":
            return [queue_harm, loss]
        case "changes":
            # Claims wait for a while before anybody begins them.
            seconds = draft.units
            draft.do(0.0, "slow_log", "worker", seconds=seconds, amount=0.5 * draft.tempo)
            return [change]
        case _:
            return [
                crash, crash, freeze, freeze, stop, loss,
                loss, loss, outage, outage, slowness,
                queue_harm, queue_harm, full, clock, all_away,
            ]  # fmt: skip
