"""Around a handler: the attempt before it, the outcome after it, and then the acknowledgement."""

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from tests.simulation import network
from tests.simulation.mutants.mutant import Mutants, gives, method

from horolog.application.worker.admission import Admission
from horolog.application.worker.finishing import Finishing
from horolog.application.worker.group_commit import GroupCommit
from horolog.application.worker.heartbeats import Heartbeats
from horolog.application.worker.running import Running

WORKER = Mutants()


@WORKER.mutant("handlers are called before the log knows of the attempt")
def _(stack: ExitStack) -> None:
    attempt = Admission._attempt  # pyright: ignore[reportPrivateUsage]

    def eager(self: Any, waiting: Any, *, has_slots: bool) -> None:
        submit, begun = self._commit.submit, list[Any]()

        def later(*args: Any) -> None:
            begun.append(args)

        with patch.object(self._commit, "submit", later):
            attempt(self, waiting, has_slots=has_slots)
        key = (waiting.ready.occurrence, waiting.ready.attempt)
        started = self._attempting[key]
        self._running[key] = started
        self._start(started)

        def settled(verdict: Any) -> None:
            self._attempting.pop(key, None)

        for args in begun:
            submit(args[0], settled)

    method(stack, Admission, "_attempt", eager)


@WORKER.mutant("messages are acknowledged before the outcome is committed")
def _(stack: ExitStack) -> None:
    submit = Finishing._submit  # pyright: ignore[reportPrivateUsage]

    def eager(self: Any, attempt: Any, outcome: Any) -> None:
        attempt.held.settle()
        submit(self, attempt, outcome)

    method(stack, Finishing, "_submit", eager)


@WORKER.mutant("refused outcomes are acknowledged as if they were recorded")
def _(stack: ExitStack) -> None:
    def lenient(self: Any, attempt: Any, outcome: Any, verdict: Any) -> None:
        attempt.held.settle()

    method(stack, Finishing, "_settled", lenient)


@WORKER.mutant("redeliveries are run again")
def _(stack: ExitStack) -> None:
    attempted = Admission._attempted  # pyright: ignore[reportPrivateUsage]

    def believing(self: Any, attempt: Any, verdict: Any) -> None:
        attempted(self, attempt, "accepted")

    method(stack, Admission, "_attempted", believing)


@WORKER.mutant("an append whose answer was cut off is believed to be refused", "the queue")
def _(stack: ExitStack) -> None:
    async def nothing_of_ours(self: Any, decisions: Any, verdicts: Any) -> Any:
        return verdicts

    method(stack, GroupCommit, "_recognised", nothing_of_ours)

    def not_ours(log: Any, batch: Any, verdicts: Any) -> Any:
        return verdicts

    stack.enter_context(patch.object(network, "recognised", not_ours))


@WORKER.mutant("an attempt begins though its lease may be over", "old workers")
def _(stack: ExitStack) -> None:
    method(stack, Running, "_is_late", gives(False))


@WORKER.mutant("a lease is trusted on that a heartbeat has found gone", "old workers")
def _(stack: ExitStack) -> None:
    extend = Heartbeats._extend  # pyright: ignore[reportPrivateUsage]

    def trusting(self: Any, attempts: Any, now: float) -> None:
        extend(self, attempts, now)
        for attempt in attempts:
            attempt.trusted_until = now + self._settings.trusted_s

    method(stack, Heartbeats, "_extend", trusting)


@WORKER.mutant("a job's timeout is not kept", "nothing")
def _(stack: ExitStack) -> None:
    method(stack, Running, "_expire", gives(None))


@WORKER.mutant("what a lost attempt did is not asked for")
def _(stack: ExitStack) -> None:
    async def undecided(self: Any, attempt: Any, payload: Any) -> bool:
        return False

    method(stack, Running, "_decided_by_reconcile", undecided)
