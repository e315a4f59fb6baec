"""The system broken in known ways, one at a time: what the simulation has to see.

Each mutant is a patch of the code that is under the simulation, undone afterwards. It leaves out
one thing that somebody might leave out: a check, an order of two steps, a part of a key.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from horolog.application.commands import changing, triggering
from horolog.application.commands.changing import DecideOccurrence
from horolog.application.log import Fences
from horolog.application.projecting.running import Running as RunningProjection
from horolog.application.rebuild.filling import Filling
from horolog.application.retention.scanning import Scan
from horolog.application.scanner import deciding
from horolog.application.scanner.claiming import Claiming
from horolog.application.scanner.looking import Looking
from horolog.application.scanner.progress import Progress
from horolog.application.scanner.republishing import Republishing
from horolog.application.scanner.sweep import Sweep
from horolog.application.scanner.territory import Territory
from horolog.application.scanner.watching import Miss, ReadsMisses, Watching
from horolog.application.worker.admission import Admission
from horolog.application.worker.finishing import Finishing
from horolog.application.worker.group_commit import GroupCommit
from horolog.application.worker.heartbeats import Heartbeats
from horolog.application.worker.running import Running
from horolog.domain import failure, firing, ids, job, lanes, occurrence, partition
from horolog.domain.retry import Retry
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.projections import rows

Break = Callable[[ExitStack], None]


@dataclass(frozen=True)
class Mutant:
    """``breaks`` enters its patches into a stack. ``focus`` is the trouble that may show it."""

    name: str
    breaks: Break
    focus: str = "everything"

    @contextmanager
    def applied(self) -> Generator[None]:
        with ExitStack() as stack:
            self.breaks(stack)
            yield


MUTANTS: list[Mutant] = []


def mutant(name: str, focus: str = "everything") -> Callable[[Break], Break]:
    def register(breaks: Break) -> Break:
        MUTANTS.append(Mutant(name, breaks, focus))
        return breaks

    return register


def everywhere(stack: ExitStack, function: Any, instead: Any) -> None:
    """Patches a function in every module that has imported it."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("horolog"):
            continue
        for attribute, value in list(vars(module).items()):
            if value is function:
                stack.enter_context(patch.object(module, attribute, instead))


def method(stack: ExitStack, owner: type[Any], name: str, instead: Any) -> None:
    stack.enter_context(patch.object(owner, name, instead))


def gives(value: Any) -> Callable[..., Any]:
    """A function that does nothing, and returns this."""

    def instead(*args: Any, **kwargs: Any) -> Any:
        return value

    return instead


# The log and its fences.


@mutant("claims state no fencing token", "old leaders")
def _(stack: ExitStack) -> None:
    def unfenced(self: Territory, partitions: Any) -> Fences:
        return Fences(self.instance, {})

    method(stack, Territory, "fences", unfenced)


@mutant("an election reuses the token of the one before")
def _(stack: ExitStack) -> None:
    evolve = partition.evolve

    def reusing(state: Any, event: Any) -> Any:
        after = evolve(state, event)
        return replace(after, token=1) if isinstance(event, partition.Elected) else after

    everywhere(stack, evolve, reusing)


@mutant("the log does not look at a decision's guard")
def _(stack: ExitStack) -> None:
    holds = SimulatedLog._holds  # pyright: ignore[reportPrivateUsage]

    def lenient(self: Any, guard: Any, instance: Any, stamp: Any) -> bool:
        return guard.kind == "next_run" or holds(self, guard, instance, stamp)

    method(stack, SimulatedLog, "_holds", lenient)


@mutant("an occurrence's key leaves out its fire time")
def _(stack: ExitStack) -> None:
    right = ids.occurrence_id

    def keyed(job_id: Any, fire_time: Any, kind: Any = "schedule", salt: str = "") -> Any:
        return right(job_id, fire_time.replace(minute=0, second=0, microsecond=0), kind, salt)

    everywhere(stack, right, keyed)


# The scanner.


@mutant("claims are published before the log has accepted them")
def _(stack: ExitStack) -> None:
    append = Claiming.append

    async def eager(self: Any, proposals: Any, tokens: Any) -> None:
        for proposal in proposals:
            for claimed in proposal.claimed:
                self._outbox.add(proposal.job, claimed, batch=None)
        await append(self, proposals, tokens)

    method(stack, Claiming, "append", eager)


@mutant("the publishing position passes what is not confirmed", "failover")
def _(stack: ExitStack) -> None:
    def passing(self: Any, number: int) -> None:
        batches = self._batches.get(number)
        while batches:
            self.marks[number] = batches.popleft().position

    method(stack, Progress, "_pass", passing)


@mutant("a takeover publishes the first page of what was left, and forgets the rest", "failover")
def _(stack: ExitStack) -> None:
    step = Republishing.step

    async def one_page(self: Any) -> float | None:
        rounds = list(self._rounds)
        pause_s = await step(self)
        if rounds and rounds[0] in self._rounds:
            self._rounds.remove(rounds[0])
            self._finish(rounds[0])
        return pause_s

    method(stack, Republishing, "step", one_page)


@mutant("a claim whose window ends is published again without a look at the queue")
def _(stack: ExitStack) -> None:
    async def not_there(self: Any, places: Any) -> list[bool]:
        return [False for _ in places]

    method(stack, Looking, "_there", not_there)


@mutant("a claim whose window ends is never published again")
def _(stack: ExitStack) -> None:
    async def there(self: Any, places: Any) -> list[bool]:
        return [True for _ in places]

    async def no_strangers(self: Any) -> bool:
        return False

    method(stack, Looking, "_there", there)
    method(stack, Looking, "_scan", no_strangers)


@mutant("the sweep reads the index once, and never from the beginning again")
def _(stack: ExitStack) -> None:
    method(stack, Sweep, "_start_pass", gives(None))
    method(stack, Sweep, "reload", gives(None))


@mutant("what is refused as a conflict is dropped")
def _(stack: ExitStack) -> None:
    method(stack, Claiming, "_conflict", gives(None))
    method(stack, Sweep, "_start_pass", gives(None))


@mutant("attempts whose lease ran out are not noticed")
def _(stack: ExitStack) -> None:
    decide = deciding.decide_occurrence

    def blind(row: Any, terms: Any) -> Any:
        return None if row.occurrence.state in ("running", "stopping") else decide(row, terms)

    everywhere(stack, decide, blind)


@mutant("attempts are called lost while their lease still runs", "nothing")
def _(stack: ExitStack) -> None:
    method(stack, Heartbeats, "_extend_due", gives(None))


@mutant("catching up drops the first of what it should run")
def _(stack: ExitStack) -> None:
    plan_fires = firing.plan_fires

    def dropping(*args: Any, **kwargs: Any) -> Any:
        plan = plan_fires(*args, **kwargs)
        if len(plan.fires) > 1:
            del plan.fires[0]
        return plan

    everywhere(stack, plan_fires, dropping)


@mutant("all of a backlog is skipped, whatever the policy")
def _(stack: ExitStack) -> None:
    right = firing._catch_up  # pyright: ignore[reportPrivateUsage]

    def skipping(state: Any, due: Any, now: Any) -> Any:
        wanted = right(state, due, now)
        return replace(wanted, fires=[])

    stack.enter_context(patch.object(firing, "_catch_up", skipping))


@mutant("overlap is ignored")
def _(stack: ExitStack) -> None:
    plan_fires = firing.plan_fires

    def overlapping(*args: Any, **kwargs: Any) -> Any:
        return plan_fires(*args, **kwargs | {"unfinished": 0})

    everywhere(stack, plan_fires, overlapping)


@mutant("concurrency limits are not stated")
def _(stack: ExitStack) -> None:
    everywhere(stack, lanes.lanes_of, gives([]))


@mutant("a retry has the number of the attempt before")
def _(stack: ExitStack) -> None:
    decide = occurrence.decide_claim

    def same(state: Any, **kwargs: Any) -> Any:
        return decide(state, **kwargs).model_copy(update={"attempt": max(1, state.attempt)})

    everywhere(stack, decide, same)


# The worker.


@mutant("handlers are called before the log knows of the attempt")
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


@mutant("messages are acknowledged before the outcome is committed")
def _(stack: ExitStack) -> None:
    submit = Finishing._submit  # pyright: ignore[reportPrivateUsage]

    def eager(self: Any, attempt: Any, outcome: Any) -> None:
        attempt.held.settle()
        submit(self, attempt, outcome)

    method(stack, Finishing, "_submit", eager)


@mutant("refused outcomes are acknowledged as if they were recorded")
def _(stack: ExitStack) -> None:
    def lenient(self: Any, attempt: Any, outcome: Any, verdict: Any) -> None:
        attempt.held.settle()

    method(stack, Finishing, "_settled", lenient)


@mutant("redeliveries are run again")
def _(stack: ExitStack) -> None:
    attempted = Admission._attempted  # pyright: ignore[reportPrivateUsage]

    def believing(self: Any, attempt: Any, verdict: Any) -> None:
        attempted(self, attempt, "accepted")

    method(stack, Admission, "_attempted", believing)


@mutant("an append whose answer was cut off is believed to be refused", "the queue")
def _(stack: ExitStack) -> None:
    async def nothing_of_ours(self: Any, decisions: Any, verdicts: Any) -> Any:
        return verdicts

    method(stack, GroupCommit, "_recognised", nothing_of_ours)
    from tests.simulation import network

    def not_ours(log: Any, batch: Any, verdicts: Any) -> Any:
        return verdicts

    stack.enter_context(patch.object(network, "recognised", not_ours))


@mutant("an attempt begins though its lease may be over", "old workers")
def _(stack: ExitStack) -> None:
    method(stack, Running, "_is_late", gives(False))


@mutant("a job's timeout is not kept", "nothing")
def _(stack: ExitStack) -> None:
    method(stack, Running, "_expire", gives(None))


@mutant("what a lost attempt did is not asked for")
def _(stack: ExitStack) -> None:
    async def undecided(self: Any, attempt: Any, payload: Any) -> bool:
        return False

    method(stack, Running, "_decided_by_reconcile", undecided)


# Retries and orders.


@mutant("retries do not wait")
def _(stack: ExitStack) -> None:
    method(stack, Retry, "delay_s", gives(0.0))


@mutant("one attempt more than the budget allows")
def _(stack: ExitStack) -> None:
    next_try = Retry.next_try

    def generous(self: Any, kind: Any, failures: int, *args: Any, **kwargs: Any) -> Any:
        return next_try(self, kind, max(1, failures - 1), *args, **kwargs)

    method(stack, Retry, "next_try", generous)


@mutant("hopeless failures are tried again")
def _(stack: ExitStack) -> None:
    everywhere(stack, failure.is_worth_repeating, gives(True))


@mutant("a snooze uses up an attempt")
def _(stack: ExitStack) -> None:
    evolve = occurrence._evolve_rarely  # pyright: ignore[reportPrivateUsage]

    def costly(state: Any, event: Any) -> Any:
        after = evolve(state, event)
        if isinstance(event, occurrence.Snoozed):
            return replace(after, failures=after.failures + 1)
        return after

    stack.enter_context(patch.object(occurrence, "_evolve_rarely", costly))


@mutant("a retry comes before its time")
def _(stack: ExitStack) -> None:
    right = rows.occurrence_next_run

    def early(state: Any) -> Any:
        row = right(state)
        if row.state == "retrying" and row.due_at is not None:
            return replace(row, due_at=row.due_at - timedelta(seconds=2))
        return row

    everywhere(stack, right, early)


@mutant("the runs of a cancelled job go on", "changes")
def _(stack: ExitStack) -> None:
    everywhere(stack, changing.cancel, _cancels_the_job_alone)


def _cancels_the_job_alone(context: Any, job_id: Any, **kwargs: Any) -> Any:
    origin = context.origin(None)
    return changing.change(context, job_id, lambda state: job.decide_cancel(state, origin=origin))


@mutant("an update leaves claims with the payload before it", "changes")
def _(stack: ExitStack) -> None:
    def none(context: Any) -> DecideOccurrence:
        return lambda state: []

    everywhere(stack, changing.recalled, none)


@mutant("a resumed job runs what the pause held back", "changes")
def _(stack: ExitStack) -> None:
    stack.enter_context(patch.object(job, "skipped_until", gives(None)))


@mutant("a paused job stays in the index")
def _(stack: ExitStack) -> None:
    right = rows.job_next_run

    def kept(state: Any) -> Any:
        return right(replace(state, status="active") if state.status == "paused" else state)

    everywhere(stack, right, kept)


@mutant("the same request orders another run")
def _(stack: ExitStack) -> None:
    from horolog.infrastructure.simulated.orders import SimulatedOrders

    method(stack, SimulatedOrders, "triggered", gives(None))
    decide: Any = triggering.decide_trigger

    def salted(state: Any, **kwargs: Any) -> Any:
        return decide(state, **kwargs | {"salt": f"{kwargs['salt']} {state.version}"})

    stack.enter_context(patch.object(triggering, "decide_trigger", salted))


@mutant("a fire time moves the job on by two")
def _(stack: ExitStack) -> None:
    from horolog.domain import due_fires

    right = due_fires.due_fires

    def leaping(schedule: Any, next_fire: Any, fires: int, until: Any) -> Any:
        for fire in right(schedule, next_fire, fires, until):
            after = None if fire.next_fire is None else schedule.next_after(fire.next_fire)
            yield replace(fire, next_fire=None if after is None else after.at)

    everywhere(stack, right, leaping)


# What is kept, and who watches.


@mutant("a pruning does not say where schedules stood")
def _(stack: ExitStack) -> None:
    method(stack, Scan, "_note_move", gives(None))


@mutant("a rebuild leaves out what was appended meanwhile")
def _(stack: ExitStack) -> None:
    method(stack, Filling, "last", gives(True))


@mutant("a projection passes over what it cannot apply at once")
def _(stack: ExitStack) -> None:
    method(stack, RunningProjection, "_try_again", gives(None))


@mutant("nobody notices that a job does not succeed any more", "nothing")
def _(stack: ExitStack) -> None:
    begin = Watching.__init__

    def of_runs(self: Any, territory: Any, *, misses: ReadsMisses, **rest: Any) -> None:
        begin(self, territory, misses=_OfRuns(misses), **rest)

    method(stack, Watching, "__init__", of_runs)


class _OfRuns:
    def __init__(self, misses: ReadsMisses) -> None:
        self._misses = misses

    async def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        found = await self._misses.missed(after, limit)
        return [miss for miss in found if miss.deadline != "success"]
