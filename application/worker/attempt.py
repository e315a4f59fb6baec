"""An attempt in this worker's hands, from its acceptance by the log to its outcome."""

import asyncio
from math import inf
from threading import Lock
from typing import Literal

from horolog.application.privacy.ports import Opened
from horolog.application.ready import ReadyRun
from horolog.application.tracing import NO_SPAN
from horolog.application.worker.handlers import AnyHandler
from horolog.application.worker.held import Held
from horolog.application.worker.run import Run
from horolog.domain.occurrence import OccurrenceState

End = Literal["timeout", "stop", "taken", "cancelled"]
"""Why a handler was told to stop: its time is over, the worker stops, the attempt is not ours any
more, the run was cancelled."""

_deciding = Lock()


class Attempt:
    """``state`` is the occurrence's with this attempt running: what its outcome rests on.

    ``decided``: an outcome was submitted, so whatever the handler still does is without effect.
    ``opened``: the payload, where it was sealed; what the run comes to is then sealed too.
    """

    __slots__ = (
        "cancellable",
        "decided",
        "ended_by",
        "handler",
        "has_slots",
        "held",
        "opened",
        "ready",
        "run",
        "span",
        "started_at",
        "state",
        "task",
        "timer",
        "trusted_until",
    )

    def __init__(
        self, ready: ReadyRun, handler: AnyHandler, held: Held, state: OccurrenceState, run: Run
    ) -> None:
        self.ready = ready
        self.handler = handler
        self.held = held
        self.state = state
        self.run = run
        self.span = NO_SPAN
        self.started_at = 0.0
        self.has_slots = True
        self.decided = False
        self.opened: Opened | None = None
        self.ended_by: End | None = None
        self.task: asyncio.Task[None] | None = None
        self.cancellable = False
        """Whether the task has taken its first step. Cancelled before, it would never run at all,
        and nobody would say what became of the attempt."""
        self.timer: asyncio.TimerHandle | None = None
        self.trusted_until = inf
        """Until when (monotonic) its lease surely runs; never any more, once the log has said that
        it is over."""

    def take_decision(self) -> bool:
        """``True`` for the one who may decide the outcome: the loop, or a handler's thread."""
        with _deciding:
            if self.decided:
                return False
            self.decided = True
            return True

    def return_decision(self) -> None:
        """Undoes ``take_decision``, where nothing was decided after all."""
        self.decided = False

    def stop(self, why: End) -> None:
        """Asks the handler to stop: a coroutine is cancelled, a thread can only be told.

        Once the outcome is decided there is nothing left to stop. A coroutine that goes on after it
        was cancelled is not cancelled a second time for the same reason.
        """
        if self.decided or (why == "cancelled" and self.ended_by is not None):
            return
        if self.ended_by is None:
            self.ended_by = why
        self.run.cancelled = True
        if self.cancellable and self.task is not None and not self.task.done():
            self.task.cancel()
