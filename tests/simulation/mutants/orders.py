"""What users order: cancelling, updating, pausing, triggering, and the next fire time."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutants, everywhere, gives, method

from horolog.application.commands import changing, triggering
from horolog.application.commands.changing import DecideOccurrence
from horolog.application.scanner.receiving import Receiving
from horolog.domain import due_fires, job
from horolog.infrastructure.simulated.orders import SimulatedOrders
from horolog.projections import rows

ORDERS = Mutants()


@ORDERS.mutant("the runs of a cancelled job go on", "changes")
def _(stack: ExitStack) -> None:
    everywhere(stack, changing.cancel, _cancels_the_job_alone)


def _cancels_the_job_alone(context: Any, job_id: Any, **kwargs: Any) -> Any:
    origin = context.origin(None)
    return changing.change(context, job_id, lambda state: job.decide_cancel(state, origin=origin))


@ORDERS.mutant("an update leaves claims with the payload before it", "changes")
def _(stack: ExitStack) -> None:
    def none(context: Any) -> DecideOccurrence:
        return lambda state: []

    everywhere(stack, changing.recalled, none)


@ORDERS.mutant("a resumed job runs what the pause held back", "changes")
def _(stack: ExitStack) -> None:
    stack.enter_context(patch.object(job, "skipped_until", gives(None)))


@ORDERS.mutant("a paused job stays in the index")
def _(stack: ExitStack) -> None:
    right = rows.job_next_run

    def kept(state: Any) -> Any:
        return right(replace(state, status="active") if state.status == "paused" else state)

    everywhere(stack, right, kept)


@ORDERS.mutant("the same request orders another run")
def _(stack: ExitStack) -> None:
    method(stack, SimulatedOrders, "triggered", gives(None))
    decide: Any = triggering.decide_trigger

    def salted(state: Any, **kwargs: Any) -> Any:
        return decide(state, **kwargs | {"salt": f"{kwargs['salt']} {state.version}"})

    stack.enter_context(patch.object(triggering, "decide_trigger", salted))


@ORDERS.mutant("a fire time moves the job on by two")
def _(stack: ExitStack) -> None:
    right = due_fires.due_fires

    def leaping(schedule: Any, next_fire: Any, fires: int, until: Any) -> Any:
        for fire in right(schedule, next_fire, fires, until):
            after = None if fire.next_fire is None else schedule.next_after(fire.next_fire)
            yield replace(fire, next_fire=None if after is None else after.at)

    everywhere(stack, right, leaping)


@ORDERS.mutant("what clients give in transactions waits for somebody to ask")
def _(stack: ExitStack) -> None:
    async def deaf(self: Any) -> float:
        return 3600.0

    method(stack, Receiving, "step", deaf)
