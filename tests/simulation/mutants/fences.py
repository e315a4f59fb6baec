"""What a claim is checked against: fencing tokens, guards, the key of an occurrence."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutants, everywhere, method

from horolog.application.log import Fences
from horolog.application.scanner.territory import Territory
from horolog.domain import ids, partition
from horolog.infrastructure.simulated.log import SimulatedLog

FENCES = Mutants()


@FENCES.mutant("claims state no fencing token", "old leaders")
def _(stack: ExitStack) -> None:
    def unfenced(self: Territory, partitions: Any) -> Fences:
        return Fences(self.instance, {})

    method(stack, Territory, "fences", unfenced)


@FENCES.mutant("an election reuses the token of the one before")
def _(stack: ExitStack) -> None:
    evolve = partition.evolve

    def reusing(state: Any, event: Any) -> Any:
        after = evolve(state, event)
        return replace(after, token=1) if isinstance(event, partition.Elected) else after

    everywhere(stack, evolve, reusing)


@FENCES.mutant("the log does not look at a decision's guard")
def _(stack: ExitStack) -> None:
    holds = SimulatedLog._holds  # pyright: ignore[reportPrivateUsage]

    def lenient(self: Any, guard: Any, instance: Any, stamp: Any) -> bool:
        return guard.kind == "next_run" or holds(self, guard, instance, stamp)

    method(stack, SimulatedLog, "_holds", lenient)


@FENCES.mutant("an occurrence's key leaves out its fire time")
def _(stack: ExitStack) -> None:
    right = ids.occurrence_id

    def keyed(job_id: Any, fire_time: Any, kind: Any = "schedule", salt: str = "") -> Any:
        return right(job_id, fire_time.replace(minute=0, second=0, microsecond=0), kind, salt)

    everywhere(stack, right, keyed)
