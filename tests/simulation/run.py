"""One simulated run from its plan, and the program behind ``make simulate``.

    python -m tests.simulation.run --seeds 200          200 seeds, from --first on
    python -m tests.simulation.run --hours 100000       as many as it takes
    python -m tests.simulation.run --seed 17            one of them again, with its story

A failing seed is printed with what is wrong, made short, and told; exit status 1.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.judging import judge
from tests.simulation.plans.plan import Plan
from tests.simulation.plans.seeds import plan_of
from tests.simulation.stretching import stretched
from tests.simulation.world import World

from horolog.application.verify import Report


@dataclass(frozen=True)
class Result:
    """What became of a plan. ``digest`` stands for the whole log: the same plan gives the same."""

    plan: Plan
    problems: list[str]
    digest: str
    hours: float
    report: Report
    troubles: dict[str, int]
    processes: int
    executions: int


@dataclass
class Totals:
    """Of many runs."""

    runs: int = 0
    hours: float = 0.0
    events: int = 0
    occurrences: int = 0
    executions: int = 0
    lost: int = 0
    retried: int = 0
    processes: int = 0
    failed: list[int] = field(default_factory=list[int])
    troubles: Counter[str] = field(default_factory=Counter[str])

    def add(self, result: Result) -> None:
        self.runs += 1
        self.hours += result.hours
        self.events += result.report.events
        self.occurrences += result.report.occurrences
        self.executions += result.executions
        self.lost += result.report.lost
        self.retried += result.report.retried
        self.processes += result.processes
        self.troubles.update(result.troubles)
        if result.problems:
            self.failed.append(result.plan.seed)

    def __str__(self) -> str:
        return (
            f"{self.runs} seeds, {self.hours:,.0f} simulated hours, {self.processes:,} processes,"
            f" {sum(self.troubles.values()):,} actions: {self.occurrences:,} occurrences,"
            f" {self.executions:,} runs of handlers, {self.lost:,} attempts lost,"
            f" {self.retried:,} retried, {self.events:,} events; failed: {self.failed or 'none'}"
        )


def run(plan: Plan) -> Result:
    """Goes through a plan, and judges it."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what the loops say of troubles is expected here
    try:
        with stretched(plan.tempo):
            world = World(plan)
            world.run()
        judgement = judge(world)
    finally:
        logging.disable(disabled)
    return Result(
        plan,
        judgement.problems,
        world.digest(),
        world.loop.now / 3600.0,
        judgement.report,
        world.counts.troubles,
        world.counts.processes,
        len(world.witness.executions),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--hours", type=float, help="go on until so many hours were simulated")
    parser.add_argument("--seed", type=int, help="run this one alone, and tell its story")
    parser.add_argument("--no-shrink", action="store_true", help="leave failing plans as they are")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        return _one(asked.seed, shrink=not asked.no_shrink)
    return _many(asked)


def _one(seed: int, *, shrink: bool) -> int:
    result = run(plan_of(seed))
    print(result.plan.told())
    print(
        f"{result.report.events} events, {result.report.occurrences} occurrences,"
        f" {result.executions} runs of handlers; log {result.digest}"
    )
    if not result.problems:
        print("nothing is wrong")
        return 0
    _tell(result, shrink=shrink)
    return 1


def _many(asked: argparse.Namespace) -> int:
    totals, began, told = Totals(), time.monotonic(), 0.0
    seed = asked.first
    while totals.hours < asked.hours if asked.hours else totals.runs < asked.seeds:
        result = run(plan_of(seed))
        totals.add(result)
        if result.problems:
            print(f"seed {seed} failed; again: make simulate SEED={seed}", flush=True)
            _tell(result, shrink=not asked.no_shrink)
        if time.monotonic() - told > 30.0:
            told = time.monotonic()
            print(f"{told - began:6.0f} s: {totals}", flush=True)
        seed += 1
    print(f"{time.monotonic() - began:6.0f} s: {totals}")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(totals.troubles.items())))
    return 1 if totals.failed else 0


def _tell(result: Result, *, shrink: bool) -> None:
    from tests.simulation.shrinking import shortened

    for problem in result.problems[:10]:
        print(f"  {problem}")
    if shrink:
        short = shortened(result.plan)
        print("the shortest story that still fails:")
        print("\n".join(f"  {line}" for line in short.plan.told().splitlines()))
        for problem in short.problems[:10]:
            print(f"  => {problem}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
