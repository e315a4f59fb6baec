"""The draft of a plan: what its seed has drawn so far, and the times near which to draw more.

Times are drawn in units: seconds at tempo 1.
"""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

from tests.simulation.plans.plan import Action

TEMPOS = (1.0, 240.0, 8.0, 1.0, 240.0, 60.0, 240.0)
UNITS_S = 900.0
"""How long a plan is, in seconds of tempo 1, before everything is healed."""

STARTS = (
    datetime(2027, 3, 13, 20, tzinfo=UTC),  # the night before New York's clocks go forward
    datetime(2027, 11, 6, 20, tzinfo=UTC),  # and back
    datetime(2027, 3, 27, 20, tzinfo=UTC),  # London's and Berlin's
    datetime(2027, 10, 30, 20, tzinfo=UTC),
    datetime(2028, 2, 28, 20, tzinfo=UTC),
    datetime(2027, 6, 1, 8, tzinfo=UTC),
)
FOCUSES = (
    ("nothing", 0.08),
    ("failover", 0.2),
    ("old leaders", 0.28),
    ("old workers", 0.36),
    ("the queue", 0.45),
    ("changes", 0.52),
)
"""How many of the plans have trouble with one thing alone; the others have all of it."""


class Draft:
    """Of one plan. The order in which something is drawn is part of what a seed means."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"plan {seed}")
        self.seed = seed
        self.tempo = TEMPOS[seed % len(TEMPOS)]
        self.start = random.choice(STARTS)
        self.units = UNITS_S * random.uniform(0.5, 1.5)
        self.scanners = random.choice((1, 2, 2, 3))
        self.workers = random.choice((1, 2, 2, 3))
        self.partitions = random.choice((1, 3, 8))
        # Some plans are calm, and some have trouble with one thing alone: there is more to be said
        # of what must not happen in them.
        draw = random.random()
        self.focus = next((focus for focus, upto in FOCUSES if draw < upto), "everything")
        if self.focus in ("failover", "old leaders"):
            self.partitions, self.scanners = random.choice((1, 2)), 2
        self.moments: list[float] = []
        self.jobs = 0
        self.actions: list[Action] = []

    def do(self, at: float, kind: str, target: str = "", **values: Any) -> None:
        """Plans an action; ``at`` and ``seconds`` are units.

        None comes after the plan's end. Whoever resumed a job when all jobs had been paused, to let
        the world come to its rest, would have it run beyond the last look that is taken.
        """
        if "seconds" in values:
            values["seconds"] *= self.tempo
        self.actions.append(Action(min(at, self.units) * self.tempo, kind, target, **values))

    def moment(self) -> float:
        """A time of the plan, in units: more often than not one at which something is due."""
        random = self.random
        if self.moments and random.random() < 0.7:
            near = random.choice(self.moments)
            offset = random.choice((0.003, 0.05, 1.0)) * random.uniform(-1, 3) / self.tempo
            return min(max(0.0, near + offset), self.units)
        return random.uniform(0.0, self.units)

    def due_moment(self) -> float:
        """A time at which something is due, where anything is."""
        return self.random.choice(self.moments) if self.moments else self.moment()

    @contextmanager
    def apart(self, what: str) -> Generator[Random]:
        """Drawn by itself: what is drawn after it stays as it was, however much this takes."""
        self.random, drawn = Random(f"{what} {self.seed}"), self.random
        try:
            yield self.random
        finally:
            self.random = drawn

    def someone(self) -> str:
        random = self.random
        role, count = random.choice(
            (("scanner", self.scanners), ("worker", self.workers), ("scanner", self.scanners))
        )
        return f"{role}-{random.randrange(count)}"
