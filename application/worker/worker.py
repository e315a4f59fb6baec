"""The worker's loop: it pulls, attempts, runs and finishes, and stops without dropping anything.

A run takes its slots first, is attempted in the log next, and runs only when the log has accepted
that. What is pulled beyond the free slots waits here unattempted, and is no more than the worker's
pace uses up in a moment. While the log is away nothing is pulled and nothing begun.

Stopping: no new pulls; what waits goes back to the queue at once; what runs may finish within the
grace; the rest is cancelled and given back in the log, which uses up no attempt. Heartbeats go on
until the last run has ended.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from uuid import UUID

from horolog.application.decision import decide_on_occurrence
from horolog.application.log import Verdict
from horolog.application.ready import ReadyRun, decode
from horolog.application.scanner.clock import Clock
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.attempting import attempt_of
from horolog.application.worker.counting import Counting, RecordsCounts
from horolog.application.worker.finishing import Finishing
from horolog.application.worker.group_commit import AppendsFromLoop, GroupCommit
from horolog.application.worker.handlers import AnyHandler, Handlers
from horolog.application.worker.heartbeats import AnnouncesWorker, ExtendsLeases, Heartbeats
from horolog.application.worker.held import NEVER, Held, HeldMessages, PullsReady, ReadyMessage
from horolog.application.worker.lifeline import ReadsResults, WorkerLifeline
from horolog.application.worker.pace import Pace
from horolog.application.worker.redelivery import ReadsOccurrence, recognise
from horolog.application.worker.run import Run
from horolog.application.worker.running import Running
from horolog.application.worker.settings import WorkerSettings
from horolog.application.worker.slots import Slots
from horolog.application.worker.transactions import Transactions
from horolog.domain.errors import StoreUnavailable, UnreadableEvent
from horolog.domain.occurrence_events import DeadLettered

log = logging.getLogger("horolog.worker")


@dataclass(frozen=True, slots=True)
class WorkerPorts:
    """Everything outside of itself that a worker needs."""

    ready: PullsReady
    log: AppendsFromLoop
    occurrences: ReadsOccurrence
    leases: ExtendsLeases
    presence: AnnouncesWorker
    transactions: Transactions
    results: ReadsResults
    counts: RecordsCounts
    clock: Clock


@dataclass(slots=True)
class _Waiting:
    """A run in hand that has no slots yet."""

    ready: ReadyRun
    handler: AnyHandler
    held: Held


class WorkerLoop:
    """One worker: made and run on one event loop, once."""

    def __init__(
        self, handlers: Handlers, ports: WorkerPorts, settings: WorkerSettings, actor: str
    ) -> None:
        """``actor`` names this life of this process, and nothing else ever: by it the worker
        recognises its own events after a cut connection."""
        self._handlers = handlers
        self._ports = ports
        self._settings = settings
        self._actor = actor
        self._monotonic = ports.clock.monotonic
        self._counting = Counting()
        self._commit = GroupCommit(ports.log, ports.clock, settings)
        self._slots = Slots(settings, handlers.by_name)
        self._held = HeldMessages(settings.ack_wait_s / 3)
        self._pace = Pace(self._monotonic())
        self._waiting: deque[_Waiting] = deque()
        self._attempting: dict[_Key, Attempt] = {}
        self._attempts: dict[_Key, Attempt] = {}
        self._refused: asyncio.Queue[tuple[ReadyRun, Held]] = asyncio.Queue()
        self._runs_per_message = 1.0
        self._stopping = False
        self._has_room = asyncio.Event()
        self._quiet = asyncio.Event()
        self._admission: asyncio.Handle | None = None
        self._named_unknown: set[str] = set()
        finishing = Finishing(
            self._commit,
            handlers.classification,
            self._counting,
            actor=actor,
            monotonic=self._monotonic,
        )
        self._finishing = finishing
        self._running = Running(
            handlers,
            finishing,
            self._commit,
            ports.transactions,
            settings=settings,
            monotonic=self._monotonic,
            ended=self._ended,
        )
        self._heartbeats = Heartbeats(
            self._in_hand,
            ports.leases,
            ports.presence,
            ports.counts,
            self._counting,
            handlers=handlers.by_name,
            settings=settings,
            monotonic=self._monotonic,
        )
        self._lifeline = WorkerLifeline(
            lambda occurrence, attempt: self._attempts.get((occurrence, attempt)),
            self._heartbeats,
            ports.results,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Works until ``stop`` is set, then drains. Raises what its own machinery raised, if it
        did; handlers never end it."""
        self._heartbeats.start()
        loop = asyncio.get_running_loop()
        pulling = loop.create_task(self._pull(), name="horolog-pull")
        machinery = [
            loop.create_task(self._commit.run(), name="horolog-commit"),
            loop.create_task(self._look_up_refused(), name="horolog-refused"),
            loop.create_task(self._tend(), name="horolog-tend"),
        ]
        stopped = loop.create_task(stop.wait(), name="horolog-stop")
        try:
            await asyncio.wait([stopped, pulling, *machinery], return_when=asyncio.FIRST_COMPLETED)
            broken = [task for task in (pulling, *machinery) if task.done()]
            pulling.cancel()
            await self._drain(can_commit=not machinery[0].done())
            for task in broken:
                task.result()
        finally:
            for task in (stopped, pulling, *machinery):
                task.cancel()
            await asyncio.gather(stopped, pulling, *machinery, return_exceptions=True)
            await self._heartbeats.stop()
            self._running.close()

    # Taking: from the queue into this worker's hands.

    async def _pull(self) -> None:
        while True:
            room = self._room()
            if room <= 0:
                self._has_room.clear()
                await self._has_room.wait()
                continue
            limit = min(_MAX_PULL, ceil(room / self._runs_per_message))
            messages = await self._ports.ready.pull(limit)
            taken = sum(self._take(message) for message in messages)
            if messages:
                # Quick to believe in many runs a message, slow to forget it: never too much.
                mean = taken / len(messages)
                self._runs_per_message = max(1.0, mean, self._runs_per_message * 0.9)
            self._admit()

    def _room(self) -> int:
        """How many more runs are wanted in hand now."""
        if self._stopping or not self._may_begin():
            return 0
        ahead = min(_MAX_AHEAD, int(self._pace.per_second(self._monotonic()) * _AHEAD_S))
        return self._slots.free + ahead - len(self._waiting)

    def _may_begin(self) -> bool:
        return self._commit.available and self._commit.waiting < self._settings.uncommitted_runs

    def _take(self, message: ReadyMessage) -> int:
        """Takes a message in hand; how many runs it had."""
        try:
            runs = decode(message.data)
        except ValueError as error:
            self._counting.add("strange_messages")
            log.warning("a message in the ready queue was thrown away: %s", error)
            message.tell(NEVER)
            return 0
        held = self._held.hold(message, len(runs), self._monotonic())
        for ready in runs:
            handler = self._handlers.by_name.get(ready.name)
            if handler is None:
                self._no_handler(ready, held)
            else:
                self._waiting.append(_Waiting(ready, handler, held))
        return len(runs)

    def _no_handler(self, ready: ReadyRun, held: Held) -> None:
        """A run that nobody here can do: another worker's, and in the end a dead letter."""
        left_s = self._settings.unknown_handler_wait_s - held.message.age_s
        self._counting.add("unknown_handlers")
        if ready.name not in self._named_unknown:
            self._named_unknown.add(ready.name)
            log.warning("this worker has no handler %r; its runs are left to others", ready.name)
        if left_s > 0:
            held.leave(min(left_s, self._settings.unknown_handler_delay_s))
            return
        event = DeadLettered(
            cause="unknown_handler",
            owner=ready.owner,
            error=f"no worker had a handler {ready.name!r} within"
            f" {self._settings.unknown_handler_wait_s:g} s",
            actor=self._actor,
        )
        decision, _ = decide_on_occurrence(ready.claimed(), [event], name=ready.name)

        def settled(verdict: Verdict) -> None:
            if verdict == "accepted":
                held.settle()
            else:
                self._refused.put_nowait((ready, held))

        self._commit.submit(decision, settled)

    # Attempting: slots first, then the log's word.

    def _wake(self) -> None:
        """Admits what waits, once for all that happens in this round of the loop."""
        if self._admission is None:
            self._admission = asyncio.get_running_loop().call_soon(self._admit)

    def _admit(self) -> None:
        self._admission = None
        if self._stopping:
            return
        blocked: list[_Waiting] = []
        while self._waiting and self._slots.free > 0 and self._may_begin():
            waiting = self._waiting.popleft()
            if self._slots.take(waiting.handler):
                self._attempt(waiting)
            else:
                blocked.append(waiting)
        self._waiting.extendleft(reversed(blocked))
        if self._room() > 0:
            self._has_room.set()

    def _attempt(self, waiting: _Waiting) -> None:
        ready, handler, held = waiting.ready, waiting.handler, waiting.held
        key = (ready.occurrence, ready.attempt)
        if key in self._attempting or key in self._attempts:
            # A second copy of what is in hand already: the first one's outcome is enough.
            self._counting.add("redeliveries")
            self._slots.release(handler)
            held.settle()
            return
        decision, state = attempt_of(ready, self._actor, self._settings.lease_s)
        attempt = Attempt(ready, handler, held, state, Run(ready, self._lifeline))
        self._attempting[key] = attempt
        self._commit.submit(decision, partial(self._attempted, key, attempt))

    def _attempted(self, key: "_Key", attempt: Attempt, verdict: Verdict) -> None:
        del self._attempting[key]
        if verdict != "accepted":
            self._slots.release(attempt.handler)
            self._refused.put_nowait((attempt.ready, attempt.held))
        elif self._stopping:
            attempt.started_at = self._monotonic()
            self._slots.release(attempt.handler)
            self._finishing.snoozed(attempt, 0.0, reason="the worker stops")
        else:
            self._attempts[key] = attempt
            self._running.start(attempt)
            return
        self._after_one()

    def _ended(self, attempt: Attempt) -> None:
        """A handler has ended: its slots are free."""
        self._attempts.pop((attempt.ready.occurrence, attempt.ready.attempt), None)
        self._slots.release(attempt.handler)
        self._pace.note(1, self._monotonic())
        self._after_one()

    def _after_one(self) -> None:
        if self._stopping:
            if not self._attempts and not self._attempting:
                self._quiet.set()
        else:
            self._wake()

    def _in_hand(self) -> Iterable[Attempt]:
        """The attempts that run, for the heartbeats' thread."""
        while True:
            try:
                return list(self._attempts.values())
            except RuntimeError:  # it grew while it was copied
                continue

    # Refused attempts, and what needs a look from time to time.

    async def _look_up_refused(self) -> None:
        """The cold path: what the log refused is looked up there."""
        while True:
            ready, held = await self._refused.get()
            try:
                state = await self._ports.occurrences.occurrence(ready.occurrence)
            except StoreUnavailable:
                self._refused.put_nowait((ready, held))
                await self._ports.clock.wait(asyncio.Event(), self._settings.retry_append_s)
                continue
            except UnreadableEvent as error:
                log.error("the run %s cannot be begun: %s", ready.occurrence, error)
                held.leave(self._settings.unknown_handler_delay_s)
                continue
            found = recognise(ready, state)
            if found.finding == "ready":
                held.leave(self._settings.give_back_delay_s)
            elif found.finding == "stranger":
                self._counting.add("strange_messages")
                log.warning("the run %s was thrown away: %s", ready.occurrence, found.said)
                held.disown()
            else:
                self._counting.add("redeliveries")
                log.debug("the run %s came again: %s", ready.occurrence, found.said)
                held.settle()

    async def _tend(self) -> None:
        """Extends the deliveries in hand, and gives back what waits here in vain."""
        interval_s = min(self._settings.ack_wait_s / 12, self._settings.give_back_delay_s or 1.0)
        while True:
            await self._ports.clock.wait(asyncio.Event(), interval_s)
            self._held.extend(self._monotonic())
            self._give_back_blocked()
            self._wake()

    def _give_back_blocked(self) -> None:
        """Runs that wait for their handler's own slots must not stand before those of others."""
        if not self._waiting or self._slots.free <= 0 or self._room() > 0:
            return
        before = self._monotonic() - self._settings.give_back_delay_s
        waiting = Counter(id(entry.held) for entry in self._waiting)
        given: set[int] = set()
        for entry in self._waiting:
            held = entry.held
            whole = waiting[id(held)] == held.open
            if whole and id(held) not in given and held.held_since <= before:
                given.add(id(held))
                held.give_back(self._settings.give_back_delay_s)
        self._waiting = deque(entry for entry in self._waiting if id(entry.held) not in given)

    # Stopping.

    async def _drain(self, *, can_commit: bool) -> None:
        self._stopping = True
        clock, settings = self._ports.clock, self._settings
        for entry in self._waiting:
            entry.held.give_back(0.0)
        self._waiting.clear()
        if self._attempts or self._attempting:
            log.info(
                "stopping: %d runs may finish within %g s",
                len(self._attempts),
                settings.drain_grace_s,
            )
            await clock.wait(self._quiet, settings.drain_grace_s)
        if self._attempts:
            for attempt in list(self._attempts.values()):
                attempt.stop("stop")
            await clock.wait(self._quiet, settings.cancel_grace_s)
            for attempt in list(self._attempts.values()):
                self._running.give_up(attempt)
        if can_commit:
            # Where Postgres is away for longer, the leases run out and the runs count as lost.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._commit.idle(), settings.cancel_grace_s + 1.0)
        for held in self._held:
            held.give_back(0.0)


_Key = tuple[UUID, int]

_MAX_PULL = 256
_MAX_AHEAD = 1_000
_AHEAD_S = 0.05
"""How far ahead runs are pulled, in seconds of the present pace: a few round trips."""
