"""Finishing: what became of an attempt goes into the log, and only then is its message let go.

Each outcome is submitted as soon as it is known, so a slow run holds up no neighbour. An outcome
that the log refuses is late: the attempt was given up as lost and perhaps tried again. It is
dropped, counted, and logged; the log has the truth.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from horolog.application.decision import Decision, decide_on_occurrence
from horolog.application.log import Verdict
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.classify import Classification
from horolog.application.worker.counting import Counting
from horolog.application.worker.group_commit import Settled
from horolog.application.worker.raised import Retryable, Snooze
from horolog.application.worker.results import storable_result
from horolog.domain.errors import InvalidPayload
from horolog.domain.failure import FailureKind
from horolog.domain.occurrence import decide_failure
from horolog.domain.occurrence_events import (
    DeadLettered,
    Failed,
    OccurrenceEvent,
    Snoozed,
    Succeeded,
)
from horolog.domain.origin import Origin
from horolog.domain.text import storable

log = logging.getLogger("horolog.worker")

MAX_ERROR_LENGTH = 8_000


class Commits(Protocol):
    """Where outcomes go: a group commit, or in a simulation the log itself."""

    def submit(self, decision: Decision, settled: Settled) -> None:
        """Appends the decision soon; ``settled`` is told what became of it."""
        ...

    def now(self) -> datetime:
        """Now, by the log's clock."""
        ...


class Finishing:
    """Turns the ends of handlers into outcomes in the log. For the event loop's thread."""

    def __init__(
        self,
        commit: Commits,
        classification: Classification,
        counting: Counting,
        *,
        actor: str,
        monotonic: Callable[[], float],
    ) -> None:
        self._commit = commit
        self._classification = classification
        self._counting = counting
        self._actor = actor
        self._origin = Origin(actor)
        self._monotonic = monotonic

    def returned(self, attempt: Attempt, value: Any) -> None:
        """The handler returned: success, unless what it returned cannot be kept."""
        try:
            result = storable_result(value)
        except InvalidPayload as error:
            self.failed(attempt, "argument", str(error))
        else:
            self._decide(attempt, [self._success(attempt, result)])

    def success_decision(self, attempt: Attempt, value: Any) -> Decision:
        """The success of a transactional handler, to be appended in its own transaction.

        Raises ``InvalidPayload`` for a result that cannot be kept.
        """
        return self._decision(attempt, [self._success(attempt, storable_result(value))])

    def _success(
        self, attempt: Attempt, result: Any = None, reason: str | None = None
    ) -> Succeeded:
        return Succeeded(
            attempt=attempt.ready.attempt,
            seconds=self._seconds(attempt),
            result=result,
            actor=self._actor,
            reason=reason,
        )

    def reconciled(self, attempt: Attempt) -> None:
        """The downstream says that the lost attempt before this one had done it."""
        self._decide(attempt, [self._success(attempt, reason="reconciled")])

    def unknown_outcome(self, attempt: Attempt) -> None:
        """Nobody can say whether the lost attempt did it, and the job must not risk a second."""
        error = "whether the lost attempt before this one took effect is not known"
        common: dict[str, Any] = {"kind": "lost", "error": error, "actor": self._actor}
        failed = Failed(attempt=attempt.ready.attempt, seconds=self._seconds(attempt), **common)
        dead = DeadLettered(cause="unknown_outcome", owner=attempt.ready.owner, **common)
        self._decide(attempt, [failed, dead])

    def raised(self, attempt: Attempt, error: BaseException) -> None:
        """The handler raised, and what it raised says what to do."""
        if isinstance(error, Snooze):
            self.snoozed(attempt, error.seconds)
            return
        kind = self._classification.kind(error)
        after_s = error.after if isinstance(error, Retryable) else None
        self.failed(attempt, kind, described(error), after_s)

    def taken(self, attempt: Attempt) -> None:
        """The log gave the attempt to somebody else meanwhile: there is nothing to record."""
        if not attempt.take_decision():
            return
        self._counting.add("attempts_taken_away")
        log.warning(
            "attempt %d of %s (%s) was given up as lost while it ran here; it was cancelled",
            attempt.ready.attempt,
            attempt.ready.occurrence,
            attempt.ready.name,
        )
        attempt.held.settle()

    def timed_out(self, attempt: Attempt) -> None:
        seconds = attempt.ready.timeout
        self.failed(attempt, "timeout", f"the handler did not end within its {seconds:g} s")

    def failed(
        self, attempt: Attempt, kind: FailureKind, error: str, after_s: float | None = None
    ) -> None:
        ready = attempt.ready
        events = decide_failure(
            attempt.state,
            kind=kind,
            error=storable(error, MAX_ERROR_LENGTH),
            seconds=self._seconds(attempt),
            retry=ready.retry,
            now=self._commit.now(),
            owner=ready.owner,
            origin=self._origin,
            after_s=after_s,
        )
        self._decide(attempt, events)

    def snoozed(self, attempt: Attempt, seconds: float, reason: str | None = None) -> None:
        """Given back until so many seconds from now, without using up an attempt."""
        until = self._commit.now() + timedelta(seconds=seconds)
        event = Snoozed(
            attempt=attempt.ready.attempt, until=until, actor=self._actor, reason=reason
        )
        self._decide(attempt, [event])

    def _decision(self, attempt: Attempt, events: Sequence[OccurrenceEvent]) -> Decision:
        return decide_on_occurrence(attempt.state, events, name=attempt.ready.name)[0]

    def settle(self, attempt: Attempt, verdict: Verdict) -> None:
        """What the log says about an outcome; either way the run's part in its message is over."""
        if verdict != "accepted":
            self._counting.add("late_outcomes_refused")
            log.warning(
                "the outcome of attempt %d of %s (%s) came late and was refused: it had been given"
                " up as lost",
                attempt.ready.attempt,
                attempt.ready.occurrence,
                attempt.ready.name,
            )
        attempt.held.settle()

    def _decide(self, attempt: Attempt, events: Sequence[OccurrenceEvent]) -> None:
        """Submits the one outcome of an attempt; later ones are without effect."""
        if not attempt.take_decision():
            return
        self._commit.submit(
            self._decision(attempt, events), lambda verdict: self.settle(attempt, verdict)
        )

    def _seconds(self, attempt: Attempt) -> float:
        return round(self._monotonic() - attempt.started_at, 6)


def described(error: BaseException) -> str:
    """The class and the message of an exception, whatever its ``__str__`` does."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception as second:  # noqa: BLE001 - it is the user's code that runs here
        message = f"(its text cannot be had: {type(second).__name__})"
    return f"{name}: {message}" if message else name
