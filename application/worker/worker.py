"""The worker's loop: its parts put together, and a stop that drops nothing.

    Taking ─▶ Admission ─▶ GroupCommit ─▶ Running ─▶ Finishing ─▶ GroupCommit ─▶ the message's end

Beside them: heartbeats in a thread of their own, and the look-up of what the log refused. While the
log is away nothing is pulled and nothing begun.

Stopping: no new pulls; what waits goes back to the queue at once; what runs may finish within the
grace; the rest is cancelled and given back in the log, which uses up no attempt. Heartbeats go on
until the last run has ended.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from horolog.application.measuring import UNMEASURED, Measures
from horolog.application.privacy.ports import NoKeyring, OpensSealed
from horolog.application.ready import ReadyRun
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.news import HearsNews
from horolog.application.standing import Standing
from horolog.application.tracing import UNTRACED, Spans
from horolog.application.worker.admission import Admission
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.beating import KeepsBeat
from horolog.application.worker.counting import Counting, RecordsCounts
from horolog.application.worker.finishing import Finishing, Outcome
from horolog.application.worker.group_commit import AppendsFromLoop, GroupCommit
from horolog.application.worker.handlers import Handlers
from horolog.application.worker.heartbeats import AnnouncesWorker, ExtendsLeases, Heartbeats
from horolog.application.worker.held import Held, HeldMessages, PullsReady
from horolog.application.worker.lifeline import ReadsResults, WorkerLifeline
from horolog.application.worker.opening import Opening
from horolog.application.worker.processes import RunsInProcess
from horolog.application.worker.redelivery import ReadsOccurrence, recognise
from horolog.application.worker.running import Running
from horolog.application.worker.settings import WorkerSettings
from horolog.application.worker.slots import Slots
from horolog.application.worker.taking import Taking
from horolog.application.worker.threads import RunsCalls
from horolog.application.worker.transactions import Transactions
from horolog.domain.errors import StoreUnavailable, UnreadableEvent
from horolog.domain.occurrence import OccurrenceState

log = logging.getLogger("horolog.worker")


class ReadsGenuine(Protocol):
    """Errors: ``StoreUnavailable``, ``UnreadableEvent``."""

    async def genuine(self, occurrences: Sequence[UUID]) -> list[ReadyRun]:
        """The runs of those that are claimed now, as the log has them."""
        ...


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
    stops: HearsNews
    clock: Clock
    beat: KeepsBeat | None = None
    """What the heartbeats go on by: a thread, unless a simulation has its own."""
    threads: RunsCalls | None = None
    """Where ``def`` handlers run: in threads, unless a simulation has its own."""
    processes: RunsInProcess | None = None
    genuine: ReadsGenuine | None = None
    message_key: bytes | None = None
    keyring: OpensSealed = field(default_factory=NoKeyring)
    forgotten: HearsNews | None = None


class WorkerLoop:
    """One worker: made and run on one event loop, once."""

    def __init__(
        self,
        handlers: Handlers,
        ports: WorkerPorts,
        settings: WorkerSettings,
        actor: str,
        measures: Measures = UNMEASURED,
        spans: Spans = UNTRACED,
    ) -> None:
        """``actor`` names this life of this process, and nothing else ever: by it the worker
        recognises its own events after a cut connection."""
        monotonic = ports.clock.monotonic
        self._clock = ports.clock
        self._occurrences = ports.occurrences
        self._settings = settings
        self._monotonic = monotonic
        self._counting = Counting(measures)
        self._commit = GroupCommit(ports.log, ports.clock, settings)
        self._held = HeldMessages(settings.ack_wait_s / 3)
        self._refused: asyncio.Queue[tuple[ReadyRun, Held]] = asyncio.Queue()
        self._doubts: asyncio.Queue[tuple[list[ReadyRun], Held]] = asyncio.Queue()
        self._genuine = ports.genuine
        self._refused_outcomes: asyncio.Queue[tuple[Attempt, Outcome]] = asyncio.Queue()
        self._stops = ports.stops
        self._keyring = ports.keyring
        self._forgotten = ports.forgotten
        self._finishing = finishing = Finishing(
            self._commit,
            handlers.classification,
            self._counting,
            actor=actor,
            monotonic=monotonic,
            refused=lambda attempt, outcome: self._refused_outcomes.put_nowait((attempt, outcome)),
            measures=measures,
        )
        self._admission = Admission(
            self._commit,
            finishing,
            self._counting,
            Slots(settings, handlers.by_name),
            settings=settings,
            actor=actor,
            monotonic=monotonic,
            refused=self._look_up_later,
        )
        self._running = Running(
            handlers,
            finishing,
            self._commit,
            ports.transactions,
            Opening(ports.keyring, finishing),
            settings=settings,
            monotonic=monotonic,
            ended=self._admission.ended,
            threads=ports.threads,
            measures=measures,
            spans=spans,
            processes=ports.processes,
        )
        self._heartbeats = Heartbeats(
            self._admission.in_hand,
            ports.leases,
            ports.presence,
            ports.counts,
            self._counting,
            handlers=handlers.by_name,
            settings=settings,
            monotonic=monotonic,
            beat=ports.beat,
        )
        lifeline = WorkerLifeline(self._admission.find, self._heartbeats, ports.results)
        self._admission.connect(self._running.start, lifeline)
        self._taking = Taking(
            ports.ready,
            self._admission,
            self._held,
            self._commit,
            self._counting,
            handlers=handlers.by_name,
            settings=settings,
            actor=actor,
            monotonic=monotonic,
            refused=self._look_up_later,
            key=ports.message_key,
            doubted=None if ports.genuine is None else self._doubt,
            opens_sealed=ports.keyring.has_master_key,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Works until ``stop`` is set, then drains. Raises what its own machinery raised, if it
        did; handlers never end it."""
        self._heartbeats.start()
        loop = asyncio.get_running_loop()
        pulling = loop.create_task(self._taking.run(), name="horolog-pull")
        machinery = [
            loop.create_task(self._commit.run(), name="horolog-commit"),
            loop.create_task(self._look_up_refused(), name="horolog-refused"),
            loop.create_task(self._look_up_doubts(), name="horolog-doubts"),
            loop.create_task(self._look_up_outcomes(), name="horolog-refused-outcomes"),
            loop.create_task(self._tend(), name="horolog-tend"),
            loop.create_task(self._hear_stops(), name="horolog-stops"),
        ]
        if self._forgotten is not None:
            machinery.append(loop.create_task(self._hear_forgotten(), name="horolog-forgotten"))
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

    def standing(self) -> Standing:
        """Whether it can begin runs; from any thread."""
        troubles: list[str] = []
        if not self._commit.available:
            troubles.append("outcomes cannot be appended: Postgres is away")
        gauges = {
            "running_runs": float(sum(1 for _ in self._admission.in_hand())),
            "waiting_decisions": float(self._commit.waiting),
        }
        return Standing(troubles, gauges)

    def _look_up_later(self, ready: ReadyRun, held: Held) -> None:
        self._refused.put_nowait((ready, held))

    async def _look_up_refused(self) -> None:
        """The cold path: what the log refused is looked up there."""
        while True:
            ready, held = await self._refused.get()
            try:
                state = await self._occurrences.occurrence(ready.occurrence)
            except StoreUnavailable:
                self._look_up_later(ready, held)
                await self._clock.wait(asyncio.Event(), self._settings.retry_append_s)
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

    def _doubt(self, runs: list[ReadyRun], held: Held) -> None:
        self._doubts.put_nowait((runs, held))

    async def _look_up_doubts(self) -> None:
        """What no scanner has signed is a name of claims and no more: an older scanner's message,
        or a stranger's. What is to be done is read from the log."""
        while True:
            runs, held = await self._doubts.get()
            assert self._genuine is not None
            try:
                found = await self._genuine.genuine([ready.occurrence for ready in runs])
            except StoreUnavailable:
                self._doubt(runs, held)
                await self._clock.wait(asyncio.Event(), self._settings.retry_append_s)
                continue
            except UnreadableEvent as error:
                log.error("an unsigned message cannot be looked up: %s", error)
                for _ in runs:
                    held.leave(self._settings.unknown_handler_delay_s)
                continue
            known = {(run.occurrence, run.version, run.attempt): run for run in found}
            for ready in runs:
                genuine = known.get((ready.occurrence, ready.version, ready.attempt))
                if genuine is None:
                    self._look_up_later(ready, held)
                else:
                    self._taking.take(genuine, held)
            self._admission.wake()

    async def _look_up_outcomes(self) -> None:
        """Why the log refused an outcome: the run was asked to stop, or given up."""
        while True:
            attempt, outcome = await self._refused_outcomes.get()
            state = await self._occurrence(attempt)
            self._finishing.decide_again(attempt, outcome, state)
            self._refused_outcomes.task_done()

    async def _occurrence(self, attempt: Attempt) -> OccurrenceState | None:
        """The attempt's occurrence in the log, however long that is away."""
        while True:
            try:
                return await self._occurrences.occurrence(attempt.ready.occurrence)
            except StoreUnavailable:
                await self._clock.wait(asyncio.Event(), self._settings.retry_append_s)
            except UnreadableEvent as error:
                log.error("the run %s cannot be ended: %s", attempt.ready.occurrence, error)
                return None

    async def _hear_stops(self) -> None:
        """Cancels runs as soon as the log tells that somebody asked for it. What is not heard, a
        heartbeat finds."""

        def heard(news: str) -> None:
            told = frozenset(news.split())
            for attempt in self._admission.in_hand():
                if attempt.run.key in told:
                    attempt.stop("cancelled")

        await self._stops.hear(heard, lambda: None, asyncio.Event())

    async def _hear_forgotten(self) -> None:
        """Drops the keys of subjects as soon as these are forgotten; all of them where news may
        have been missed. What is not heard ends with the moment for which a key is kept."""
        assert self._forgotten is not None

        def heard(news: str) -> None:
            self._keyring.drop([UUID(key) for key in news.split()])

        await self._forgotten.hear(heard, self._keyring.drop, asyncio.Event())

    async def _tend(self) -> None:
        """Extends the deliveries in hand, and gives back what waits here in vain."""
        interval_s = min(self._settings.ack_wait_s / 12, self._settings.give_back_delay_s or 1.0)
        while True:
            await self._clock.wait(asyncio.Event(), interval_s)
            self._held.extend(self._monotonic())
            self._admission.give_back_blocked()
            self._admission.wake()

    async def _drain(self, *, can_commit: bool) -> None:
        settings, admission = self._settings, self._admission
        if running := admission.stop():
            log.info("stopping: %d runs have %g s to finish", running, settings.drain_grace_s)
        await self._clock.wait(admission.quiet, settings.drain_grace_s)
        if not admission.quiet.is_set():
            for attempt in admission.in_hand():
                attempt.stop("stop")
            await self._clock.wait(admission.quiet, settings.cancel_grace_s)
            for attempt in admission.in_hand():
                self._running.give_up(attempt)
        if can_commit:
            # Where Postgres is away for longer, the leases run out and the runs count as lost.
            await self._clock.wait(self._commit.idle, settings.cancel_grace_s + 1.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(settings.cancel_grace_s + 1.0):
                    await self._refused_outcomes.join()
                    await self._commit.idle.wait()
        for held in self._held:
            held.give_back(0.0)
