"""The whole system in simulated time: nothing is lost or doubled, whatever a seed does to it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.simulation.mutants.known import MUTANTS
from tests.simulation.mutate import hunt
from tests.simulation.plans.plan import Action, Plan
from tests.simulation.plans.seeds import plan_of
from tests.simulation.run import Result, Totals, run
from tests.simulation.shrinking import shortened

SEEDS = [range(first, first + 7) for first in range(0, 42, 7)]
"""A thousand simulated hours; `make simulate` goes on from there."""


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_nothing_is_lost_and_nothing_doubled(seeds: range) -> None:
    totals = Totals()
    for seed in seeds:
        result = run(plan_of(seed))
        totals.add(result)
        assert not result.problems, f"make simulate SEED={seed}: {result.problems[:5]}"
    assert totals.occurrences > 50


def test_they_are_a_thousand_hours() -> None:
    assert sum(plan_of(seed).length_s for seeds in SEEDS for seed in seeds) >= 3_600 * 1_000


def test_no_plan_acts_after_its_end() -> None:
    for plan in map(plan_of, range(100)):
        assert all(action.at <= plan.length_s for action in plan.actions), plan.seed


def test_a_seed_gives_the_same_log_in_any_process() -> None:
    program = "from tests.simulation.run import run\n"
    program += "from tests.simulation.plans.seeds import plan_of\n"
    program += "print(*(run(plan_of(seed)).digest for seed in (8, 12)))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": salt},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(digests) == 1
    assert digests == {" ".join(run(plan_of(seed)).digest for seed in (8, 12)) + "\n"}


def test_a_failing_plan_is_made_short() -> None:
    """Of all that is done to the world, what the failure needs."""
    plan = plan_of(8)
    culprit = Action(5.0, "trigger", what={"job": 0, "request_id": "x", "in_s": None})
    plan = replace(plan, actions=(*plan.actions, culprit))
    well = run(plan_of(10))

    def go(candidate: Plan) -> Result:
        fails = culprit in candidate.actions and candidate.scanners > 0
        return replace(well, plan=candidate, problems=["it fails"] if fails else [])

    assert shortened(plan, go).plan.actions == (culprit,)


SEEN_AT_ONCE = ("key leaves out", "reuses the token", "acknowledged before")


@pytest.mark.parametrize("name", SEEN_AT_ONCE)
def test_what_is_broken_is_seen(name: str) -> None:
    """A few of `make mutate`."""
    (mutant,) = (mutant for mutant in MUTANTS if name in mutant.name)
    found = hunt(mutant, most=4)
    assert found.seed is not None
