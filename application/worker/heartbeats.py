"""Heartbeats: a thread of their own tells the log that long runs live.

A thread, because a handler that blocks the event loop must not lose its lease by it. The same
thread notices that the loop is blocked and names the handler whose code is running; and it records
what was counted. Runs that end within ``heartbeat_s`` cost no statement.

The queue is told by the loop (its ack wait is kept by :class:`HeldMessages`). Where the loop is
blocked for longer than that, the queue offers the message to others: whatever runs here is refused
to them by the log, and what only waited here is theirs.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Protocol
from uuid import UUID

from horolog.application.worker.attempt import Attempt
from horolog.application.worker.beating import BeatThread, KeepsBeat
from horolog.application.worker.counting import Counting, RecordsCounts
from horolog.application.worker.handlers import AnyHandler
from horolog.application.worker.settings import WorkerSettings
from horolog.domain.errors import StoreUnavailable

log = logging.getLogger("horolog.worker")


@dataclass(frozen=True, slots=True)
class Extended:
    """What the log says about the attempts asked for: ``held`` are still ours; of these, those in
    ``cancelled`` were asked to stop meanwhile, or their job was cancelled."""

    held: frozenset[UUID]
    cancelled: frozenset[UUID]


class ExtendsLeases(Protocol):
    """Extends leases in the next-run index, by the database's clock; nothing is logged.

    An attempt is named by its occurrence and its number; one that does not run any more is left
    alone and missing from the answer. Errors: ``StoreUnavailable``.
    """

    def extend(self, attempts: Sequence[tuple[UUID, int]], lease_s: float) -> Extended: ...


class AnnouncesWorker(Protocol):
    """Tells who asks (`doctor`) that this worker lives. Errors: ``StoreUnavailable``."""

    def announce(self, details: dict[str, Any], for_s: float) -> None:
        """It lives for so many seconds more, and this is what it can do."""
        ...

    def leave(self) -> None:
        """It has stopped."""
        ...


class Heartbeats:
    """Extends the leases of long runs. ``attempts`` gives those in hand, from any thread."""

    def __init__(
        self,
        attempts: Callable[[], Iterable[Attempt]],
        leases: ExtendsLeases,
        presence: AnnouncesWorker,
        counts: RecordsCounts,
        counting: Counting,
        *,
        handlers: Mapping[str, AnyHandler],
        settings: WorkerSettings,
        monotonic: Callable[[], float],
        beat: KeepsBeat | None = None,
    ) -> None:
        self._attempts = attempts
        self._leases = leases
        self._presence = presence
        self._can_do = sorted(handlers)
        self._announced_at: float | None = None
        self._counts = counts
        self._counting = counting
        self._settings = settings
        self._monotonic = monotonic
        self._codes: dict[CodeType, str] = {}
        for handler in handlers.values():
            for code in _codes_of(handler.code):
                self._codes[code] = handler.name
        self._loop = asyncio.get_running_loop()
        self._loop_thread = get_ident()
        self._extended: dict[tuple[UUID, int], float] = {}
        self._answered = self._asked = monotonic()
        self._told = False
        self._beat = beat or BeatThread()

    def start(self) -> None:
        interval_s = min(self._settings.blocked_loop_s / 2, self._settings.heartbeat_s / 4)
        self._beat.start(self.pulse, interval_s, self._leave)

    async def stop(self) -> None:
        """Ends the beats after a last recording of counts; waits for it, but not for long."""
        await self._beat.stop()

    def pulse(self) -> None:
        """One beat: extends what is due, records counts, looks whether the loop answers."""
        self._watch_loop()
        try:
            self._extend_due()
            self._announce_due()
            self._counting.record(self._counts)
        except StoreUnavailable as error:
            # The leases run by the database's clock; it may be back before they are over.
            log.debug("no heartbeat: %s", error)

    def extend(self, attempt: Attempt) -> None:
        """Extends one lease now, whatever its age. Raises ``StoreUnavailable``."""
        self._extend([attempt], self._monotonic())

    def _leave(self) -> None:
        try:
            self._counting.record(self._counts)
            self._presence.leave()
        except StoreUnavailable:
            log.warning("the last counts could not be recorded: Postgres is away")

    def _extend_due(self) -> None:
        now = self._monotonic()
        in_hand = list(self._attempts())
        if self._extended:
            keys = {_key(attempt) for attempt in in_hand}
            self._extended = {key: at for key, at in self._extended.items() if key in keys}
        due = [
            attempt
            for attempt in in_hand
            if not attempt.decided
            and now - self._extended.get(_key(attempt), attempt.started_at)
            >= self._settings.heartbeat_s
        ]
        if due:
            self._extend(due, now)

    def _announce_due(self) -> None:
        now, every_s = self._monotonic(), self._settings.heartbeat_s
        if self._announced_at is None or now - self._announced_at >= every_s:
            running = sum(1 for _ in self._attempts())
            details: dict[str, Any] = {"handlers": self._can_do, "running": running}
            self._presence.announce(details, 3 * every_s)
            self._announced_at = now

    def _extend(self, attempts: Sequence[Attempt], now: float) -> None:
        asked = [_key(attempt) for attempt in attempts]
        answer = self._leases.extend(asked, self._settings.lease_s)
        for attempt, key in zip(attempts, asked, strict=True):
            self._extended[key] = now
            if attempt.ready.occurrence not in answer.held:
                # What has not begun yet asks this before the loop comes to tell it.
                attempt.trusted_until = -inf
                attempt.run.cancelled = True
                self._on_loop(attempt.stop, "taken")
                continue
            attempt.trusted_until = now + self._settings.trusted_s
            if attempt.ready.occurrence in answer.cancelled:
                attempt.run.cancelled = True
                self._on_loop(attempt.stop, "cancelled")

    def _watch_loop(self) -> None:
        """Asks the loop to answer; when it has not for long, says whose code keeps it."""
        now = self._monotonic()
        if self._answered >= self._asked:
            if self._told:
                log.warning("the event loop runs again")
            self._told = False
            self._asked = now
            self._on_loop(self._answer)
        elif not self._told and now - self._asked >= self._settings.blocked_loop_s:
            self._told = True
            self._counting.add("loops_blocked")
            log.warning(
                "the event loop does not answer since %.1f s: %s; call blocking code in a `def`"
                " handler or with asyncio.to_thread",
                now - self._asked,
                self._culprit(),
            )

    def _answer(self) -> None:
        self._answered = self._monotonic()

    def _culprit(self) -> str:
        """The handler whose code is on the loop's stack, or else the line that runs there."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        place = "it is not in Python code"
        innermost: FrameType | None = frame
        if innermost is not None:
            place = f"{innermost.f_code.co_filename}:{innermost.f_lineno}"
        while frame is not None:
            if (name := self._codes.get(frame.f_code)) is not None:
                return f"the handler {name!r} blocks it at {place}"
            frame = frame.f_back
        return f"it is blocked at {place}"

    def _on_loop(self, function: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop was closed: the process ends
            self._beat.end()


def _key(attempt: Attempt) -> tuple[UUID, int]:
    return attempt.ready.occurrence, attempt.ready.attempt


def _codes_of(code: CodeType | None) -> Iterable[CodeType]:
    """A function's code, and that of the functions within it."""
    if code is None:
        return
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes_of(const)
