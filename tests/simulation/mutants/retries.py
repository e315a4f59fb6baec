"""Which failure is tried again, and when."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutants, everywhere, gives, method

from horolog.domain import failure, occurrence
from horolog.domain.retry import Retry
from horolog.projections import rows

RETRIES = Mutants()


@RETRIES.mutant("retries do not wait")
def _(stack: ExitStack) -> None:
    method(stack, Retry, "delay_s", gives(0.0))


@RETRIES.mutant("one attempt more than the budget allows")
def _(stack: ExitStack) -> None:
    next_try = Retry.next_try

    def generous(self: Any, kind: Any, failures: int, *args: Any, **kwargs: Any) -> Any:
        return next_try(self, kind, max(1, failures - 1), *args, **kwargs)

    method(stack, Retry, "next_try", generous)


@RETRIES.mutant("hopeless failures are tried again")
def _(stack: ExitStack) -> None:
    everywhere(stack, failure.is_worth_repeating, gives(True))


@RETRIES.mutant("a snooze uses up an attempt")
def _(stack: ExitStack) -> None:
    evolve = occurrence._evolve_rarely  # pyright: ignore[reportPrivateUsage]

    def costly(state: Any, event: Any) -> Any:
        after = evolve(state, event)
        if isinstance(event, occurrence.Snoozed):
            return replace(after, failures=after.failures + 1)
        return after

    stack.enter_context(patch.object(occurrence, "_evolve_rarely", costly))


@RETRIES.mutant("a retry comes before its time")
def _(stack: ExitStack) -> None:
    right = rows.occurrence_next_run

    def early(state: Any) -> Any:
        row = right(state)
        if row.state == "retrying" and row.due_at is not None:
            return replace(row, due_at=row.due_at - timedelta(seconds=2))
        return row

    everywhere(stack, right, early)
