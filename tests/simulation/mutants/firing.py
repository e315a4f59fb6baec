"""What falls due and what comes of it: lost attempts, catch-up, overlap, limits."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutants, everywhere, gives, method

from horolog.application.scanner import deciding
from horolog.application.worker.heartbeats import Heartbeats
from horolog.domain import firing, lanes, occurrence

FIRING = Mutants()


@FIRING.mutant("attempts whose lease ran out are not noticed")
def _(stack: ExitStack) -> None:
    decide = deciding.decide_occurrence

    def blind(row: Any, terms: Any) -> Any:
        return None if row.occurrence.state in ("running", "stopping") else decide(row, terms)

    everywhere(stack, decide, blind)


@FIRING.mutant("attempts are called lost while their lease still runs", "nothing")
def _(stack: ExitStack) -> None:
    method(stack, Heartbeats, "_extend_due", gives(None))


@FIRING.mutant("catching up drops the first of what it should run")
def _(stack: ExitStack) -> None:
    plan_fires = firing.plan_fires

    def dropping(*args: Any, **kwargs: Any) -> Any:
        plan = plan_fires(*args, **kwargs)
        if len(plan.fires) > 1:
            del plan.fires[0]
        return plan

    everywhere(stack, plan_fires, dropping)


@FIRING.mutant("all of a backlog is skipped, whatever the policy")
def _(stack: ExitStack) -> None:
    right = firing._catch_up  # pyright: ignore[reportPrivateUsage]

    def skipping(state: Any, due: Any, now: Any) -> Any:
        wanted = right(state, due, now)
        return replace(wanted, fires=[])

    stack.enter_context(patch.object(firing, "_catch_up", skipping))


@FIRING.mutant("overlap is ignored")
def _(stack: ExitStack) -> None:
    plan_fires = firing.plan_fires

    def overlapping(*args: Any, **kwargs: Any) -> Any:
        return plan_fires(*args, **kwargs | {"unfinished": 0})

    everywhere(stack, plan_fires, overlapping)


@FIRING.mutant("concurrency limits are not stated")
def _(stack: ExitStack) -> None:
    everywhere(stack, lanes.lanes_of, gives([]))


@FIRING.mutant("a retry has the number of the attempt before")
def _(stack: ExitStack) -> None:
    decide = occurrence.decide_claim

    def same(state: Any, **kwargs: Any) -> Any:
        return decide(state, **kwargs).model_copy(update={"attempt": max(1, state.attempt)})

    everywhere(stack, decide, same)
