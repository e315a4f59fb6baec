"""Group commit: what many runs want to append goes into the log together.

While one append is on its way the next one fills, so batches grow with the load by themselves and a
run that is alone never waits for company. Attempts and outcomes share the appends. Where much has
gathered a second append follows before the first has come back, so that the log has something to do
while this process goes through the answer: an outcome is submitted when its attempt was accepted,
so no decision rests on one that is still on its way.

When Postgres is away the same batch is tried again until it returns: nothing is lost or doubled,
and the worker begins nothing new. An append whose commit was cut off is looked up: what stands in
the log under our own name is taken as accepted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, Recorded, Verdict
from horolog.application.scanner.clock import Clock, DatabaseTime, microseconds
from horolog.application.worker.settings import WorkerSettings
from horolog.domain.errors import StoreUnavailable, UnreadableEvent

log = logging.getLogger("horolog.worker")

Settled = Callable[[Verdict], None]
"""Called on the event loop with what became of a decision."""


AT_ONCE = 2
"""Appends on their way at the same time. More would be smaller, and wait for each other."""


class AppendsFromLoop(Protocol):
    """``append`` of :class:`AppendsToLog` and ``stream`` of :class:`ReadsLog`, awaited."""

    async def append(self, decisions: Sequence[Decision]) -> Appended: ...

    async def stream(
        self, stream: UUID, *, after: int = 0, limit: int = 1000
    ) -> list[Recorded]: ...


class GroupCommit:
    """One writer for all runs of a worker. ``submit`` is for the event loop's thread."""

    def __init__(self, log: AppendsFromLoop, clock: Clock, settings: WorkerSettings) -> None:
        self._log = log
        self._clock = clock
        self._time = DatabaseTime(clock)
        self._settings = settings
        self._queue: deque[tuple[Decision, Settled]] = deque()
        self._many = max(1, settings.append_decisions // 2)
        self._on_their_way: set[asyncio.Task[None]] = set()
        self._wanted = asyncio.Event()
        self.idle = asyncio.Event()
        """Set while everything submitted was settled."""
        self.idle.set()
        self._last_size = 0
        self.appended: Callable[[], None] | None = None
        """Called after each append: there is room again, or the log is back."""
        self.sent_at = 0.0
        """When the batch that is settled now was sent first (monotonic): what it appended is not
        older than that."""
        self.available = True
        """Whether the last append went through; ``False`` while Postgres is away."""

    def submit(self, decision: Decision, settled: Settled) -> None:
        """Appends the decision soon; ``settled`` is told what became of it."""
        self._queue.append((decision, settled))
        if self._may_append():
            self._wanted.set()
        self.idle.clear()

    @property
    def waiting(self) -> int:
        """Decisions that are not in an append yet."""
        return len(self._queue)

    def now(self) -> datetime:
        """Now, by the database's clock. It is known after the first append."""
        return self._time.now()

    def now_at_most(self) -> datetime:
        """The same, or as much later as the answer of an append may have been on its way."""
        return self._time.now_at_most()

    async def run(self) -> None:
        """Appends what is submitted, until cancelled."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                for task in [task for task in self._on_their_way if task.done()]:
                    self._on_their_way.remove(task)
                    task.result()
                if not self._on_their_way:
                    await self._gather()
                while self._may_append():
                    self._begin()
        finally:
            for task in self._on_their_way:
                task.cancel()

    def _may_append(self) -> bool:
        """Whether another append may begin: one of anything, beside others only one of many."""
        others = len(self._on_their_way)
        return len(self._queue) >= (self._many if others else 1) and others < AT_ONCE

    def _begin(self) -> None:
        limit = self._settings.append_decisions
        batch = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        self._last_size = len(batch)
        task = asyncio.get_running_loop().create_task(self._commit(batch), name="horolog-append")
        self._on_their_way.add(task)
        task.add_done_callback(lambda _: self._wanted.set())

    async def _commit(self, batch: list[tuple[Decision, Settled]]) -> None:
        """One append, from its beginning to what follows from each verdict."""
        sent_at = self._clock.monotonic()
        verdicts = await self._append([decision for decision, _ in batch])
        self.sent_at = sent_at
        for (_, settled), verdict in zip(batch, verdicts, strict=True):
            settled(verdict)
        if not self._queue and all(
            task.done() or task is asyncio.current_task() for task in self._on_their_way
        ):
            self.idle.set()
        if self.appended is not None:
            self.appended()

    async def _gather(self) -> None:
        """Lets the loop go round while that still brings more, but not for longer than allowed.

        What gathered during the last append is company enough: the runs that the last append has
        just settled go on while this one is on its way.
        """
        if len(self._queue) * 2 > self._last_size > 1:
            return
        until = self._clock.monotonic() + self._settings.gather_s
        before = 0
        while before < len(self._queue) < self._settings.append_decisions:
            before = len(self._queue)
            await asyncio.sleep(0)
            if self._clock.monotonic() >= until:
                return

    async def _append(self, decisions: list[Decision]) -> list[Verdict]:
        """The verdicts on a batch, however long Postgres is away."""
        interrupted = False
        while True:
            sent = self._clock.monotonic()
            try:
                appended = await self._log.append(decisions)
                self._time.observe(
                    sent, self._clock.monotonic(), microseconds(appended.recorded_at)
                )
                verdicts = appended.verdicts
                if interrupted:
                    verdicts = await self._recognised(decisions, verdicts)
            except StoreUnavailable as error:
                if self.available:
                    log.warning(
                        "the log is away (%s): %d decisions wait for it, no run is begun",
                        error,
                        len(decisions) + len(self._queue),
                    )
                self.available = False
                interrupted = True
                await self._clock.wait(asyncio.Event(), self._settings.retry_append_s)
                continue
            if not self.available:
                log.info("the log is back")
                self.available = True
            return verdicts

    async def _recognised(
        self, decisions: Sequence[Decision], verdicts: Sequence[Verdict]
    ) -> list[Verdict]:
        """The verdicts of a repeated batch, with what an earlier try had written as accepted."""
        return [
            "accepted" if verdict != "accepted" and await self._is_ours(decision) else verdict
            for decision, verdict in zip(decisions, verdicts, strict=True)
        ]

    async def _is_ours(self, decision: Decision) -> bool:
        """Whether the log holds this very decision.

        No other of any process has the same event: actors are unique to a process's life, and
        attempts to a copy of their message. Were the actor enough, the second copy of a message
        would be taken for the first, and its run would be run again.
        """
        first = decision.events[0]
        try:
            found = await self._log.stream(first.stream, after=first.version - 1, limit=1)
        except UnreadableEvent:
            return False
        return bool(found) and (
            found[0].version == first.version
            and found[0].event.topic == first.event.topic
            and found[0].event.to_json() == first.event.to_json()
        )

    async def holds(self, decision: Decision) -> bool:
        """Whether the log holds this decision of ours, asked until Postgres answers.

        For a commit that somebody else made and whose answer was lost.
        """
        while True:
            try:
                return await self._is_ours(decision)
            except StoreUnavailable:
                await self._clock.wait(asyncio.Event(), self._settings.retry_append_s)
