"""The program behind ``make mutate``: each mutant until a seed has found it, and a table of that.

A mutant that no seed finds is a defect of the simulation: exit status 1.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.mutants.known import MUTANTS
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.plans.seeds import plan_of
from tests.simulation.run import run

MOST_SEEDS = 150


@dataclass(frozen=True)
class Found:
    """Which seed found a mutant, after how many, and what it said; ``seed`` is ``None`` where none
    did."""

    mutant: Mutant
    seed: int | None
    seeds: int
    seconds: float
    said: str = ""

    def __str__(self) -> str:
        by = "SURVIVES" if self.seed is None else f"seed {self.seed}"
        return f"{self.mutant.name:78} {by:>10} {self.seeds:4} {self.seconds:6.1f} s  {self.said}"


def seeds_for(mutant: Mutant) -> Iterator[int]:
    """Short plans first, and of these the ones with the trouble that may show it."""
    plans = [plan_of(seed) for seed in range(350)]
    plans.sort(key=lambda plan: (plan.tempo > 1.0, plan.focus != mutant.focus))
    yield from (plan.seed for plan in plans)


def hunt(mutant: Mutant, most: int = MOST_SEEDS) -> Found:
    """Runs seeds on the broken system until one fails."""
    began = time.process_time()
    for number, seed in enumerate(seeds_for(mutant), 1):
        with mutant.applied():
            result = run(plan_of(seed))
        if result.problems:
            said = result.problems[0]
            return Found(mutant, seed, number, time.process_time() - began, said[:160])
        if number == most:
            break
    return Found(mutant, None, most, time.process_time() - began)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__)
    parser.add_argument("--only", default="", help="those whose names hold this, or|this")
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS, help="the most for each")
    asked = parser.parse_args(arguments)
    hunted = survived = 0
    print(f"{'what is broken':78} {'found by':>10} runs      CPU  what was said first")
    for mutant in MUTANTS:
        if any(part in mutant.name for part in asked.only.split("|")):
            found = hunt(mutant, asked.seeds)
            hunted, survived = hunted + 1, survived + (found.seed is None)
            print(found, flush=True)
    print(f"{hunted} of {len(MUTANTS)} mutants, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
