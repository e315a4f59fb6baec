"""A failing plan made short: what can be left out while it still fails is left out.

First halves of the actions, then quarters, and so on down to single ones; then a process at a time.
Any failure counts: the shortest story may be another one than the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.plans.plan import Plan

if TYPE_CHECKING:
    from tests.simulation.run import Result

MOST_RUNS = 150


def shortened(plan: Plan, go: "Callable[[Plan], Result] | None" = None) -> "Result":
    """The result of the shortest plan that was found to fail within ``MOST_RUNS`` runs."""
    if go is None:
        from tests.simulation.run import run as go
    best, runs = go(plan), 1
    shorter = True
    while shorter:
        shorter = False
        for candidate in _shorter(best.plan):
            if runs >= MOST_RUNS:
                return best
            result, runs = go(candidate), runs + 1
            if result.problems:
                best, shorter = result, True
                break
    return best


def _shorter(plan: Plan) -> Iterator[Plan]:
    count = len(plan.actions)
    size = count
    while size >= 1:
        for start in range(0, count, size):
            if size < count:
                yield plan.without(set(range(start, min(count, start + size))))
        size = size // 2
    if plan.scanners > 1:
        yield replace(plan, scanners=plan.scanners - 1)
    if plan.workers > 1:
        yield replace(plan, workers=plan.workers - 1)
    last = max((action.at for action in plan.actions), default=0.0)
    if plan.length_s > last + 240.0 * plan.tempo:
        yield replace(plan, length_s=last + 120.0 * plan.tempo)
