"""Finishing: what became of an attempt goes into the log, and only then is its message let go.

Each outcome is submitted as soon as it is known, so a slow run holds up no neighbour. Where the log
refuses one, it is looked up why. If the attempt is still ours (it was asked to stop meanwhile), the
outcome is decided anew on top of that. If not, it is late: the attempt was given up as lost and
perhaps tried again. It is dropped, counted, and logged; the log has the truth.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from horolog.application.decision import Decision, decide_on_occurrence
from horolog.application.log import Verdict
from horolog.application.measuring import UNMEASURED, Measures
from horolog.application.tracing import NO_SPAN
from horolog.application.worker.asked_to_wait import asked_to_wait_s
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.classify import Classification
from horolog.application.worker.counting import Counting
from horolog.application.worker.group_commit import Settled
from horolog.application.worker.raised import MAX_WAIT_S, Retryable, Snooze
from horolog.application.worker.results import storable_result
from horolog.domain.errors import InvalidPayload
from horolog.domain.event import Event
from horolog.domain.failure import FailureKind
from horolog.domain.occurrence import (
    OccurrenceState,
    decide_failure,
    decide_snooze,
    decide_stopped,
    decide_unknown,
)
from horolog.domain.occurrence_events import Failed, OccurrenceEvent, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.sealed import envelope, sealed_text
from horolog.domain.text import storable

log = logging.getLogger("horolog.worker")

MAX_ERROR_LENGTH = 8_000


Outcome = Callable[[OccurrenceState], Sequence[OccurrenceEvent]]
"""What an attempt ended with, as events that follow on the occurrence's state."""


class Commits(Protocol):
    """Where outcomes go: a group commit, or in a simulation the log itself."""

    def submit(self, decision: Decision, settled: Settled) -> None:
        """Appends the decision soon; ``settled`` is told what became of it."""
        ...

    def now_at_most(self) -> datetime:
        """Now, by the log's clock, or a moment after: never before."""
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
        refused: Callable[[Attempt, Outcome], None],
        measures: Measures = UNMEASURED,
    ) -> None:
        """``refused`` looks up the occurrence of an outcome that the log refused, and answers with
        :meth:`decide_again`."""
        self._commit = commit
        self._classification = classification
        self._counting = counting
        self._actor = actor
        self._origin = Origin(actor)
        self._monotonic = monotonic
        self._refused = refused
        self._measures = measures
        self._measured = measures is not UNMEASURED

    def returned(self, attempt: Attempt, value: Any) -> None:
        """The handler returned: success, unless what it returned cannot be kept."""
        try:
            result = storable_result(value)
        except InvalidPayload as error:
            self.failed(attempt, "argument", str(error))
        else:
            success = [self._success(attempt, result)]
            self._decide(attempt, lambda _: success)

    def success_decision(self, attempt: Attempt, value: Any) -> Decision:
        """The success of a transactional handler, to be appended in its own transaction.

        Raises ``InvalidPayload`` for a result that cannot be kept.
        """
        return self._decision(attempt, [self._success(attempt, storable_result(value))])

    def _success(
        self, attempt: Attempt, result: Any = None, reason: str | None = None
    ) -> Succeeded:
        if attempt.opened is not None and result is not None:
            result = envelope(attempt.opened.seal(attempt.ready.occurrence, result))
        return Succeeded(
            attempt=attempt.ready.attempt,
            seconds=self._seconds(attempt),
            result=result,
            actor=self._actor,
            reason=reason,
        )

    def reconciled(self, attempt: Attempt) -> None:
        """The downstream says that the lost attempt before this one had done it."""
        success = [self._success(attempt, reason="reconciled")]
        self._decide(attempt, lambda _: success)

    def unknown_outcome(self, attempt: Attempt) -> None:
        """Nobody can say whether the lost attempt did it, and the job must not risk a second."""
        seconds, owner = self._seconds(attempt), attempt.ready.owner
        self._decide(
            attempt,
            lambda state: decide_unknown(state, seconds=seconds, owner=owner, origin=self._origin),
        )

    def raised(self, attempt: Attempt, error: BaseException) -> None:
        """The handler raised, and what it raised says what to do."""
        said = read_error(error, self._classification, self._commit.now_at_most())
        if said.snooze_s is not None:
            self.snoozed(attempt, said.snooze_s)
        else:
            self.failed(attempt, said.kind, said.text, said.after_s)

    def taken(self, attempt: Attempt) -> None:
        """The log gave the attempt to somebody else meanwhile: there is nothing to record."""
        if not attempt.take_decision():
            return
        self._counting.add("attempts_taken_away")
        attempt.span.end("taken", {"horolog.outcome": "taken"})
        log.warning(
            "attempt %d of %s (%s) was given up as lost while it ran here; it was cancelled",
            attempt.ready.attempt,
            attempt.ready.occurrence,
            attempt.ready.name,
        )
        attempt.held.settle()

    def timed_out(self, attempt: Attempt) -> None:
        seconds = attempt.ready.timeout
        error = f"the handler did not end within its {seconds:g} s"
        self.failed(attempt, "timeout", error, quotes=False)

    def failed(
        self,
        attempt: Attempt,
        kind: FailureKind,
        error: str,
        after_s: float | None = None,
        *,
        quotes: bool = True,
    ) -> None:
        """``quotes``: the message may quote the payload, so it is sealed where that is."""
        # What is tried again too soon hits a downstream that asked for a pause.
        ready, now, seconds = attempt.ready, self._commit.now_at_most(), self._seconds(attempt)
        error = storable(error, MAX_ERROR_LENGTH)
        if quotes and attempt.opened is not None:
            error = sealed_text(attempt.opened.seal(ready.occurrence, error))
        since = ready.since
        if since is None and ready.retry.max_elapsed is not None:
            since = now - timedelta(seconds=seconds)

        def outcome(state: OccurrenceState) -> list[OccurrenceEvent]:
            return decide_failure(
                state,
                kind=kind,
                error=error,
                seconds=seconds,
                retry=ready.retry,
                now=now,
                owner=ready.owner,
                origin=self._origin,
                after_s=after_s,
                since=since,
            )

        self._decide(attempt, outcome)

    def snoozed(self, attempt: Attempt, seconds: float, reason: str | None = None) -> None:
        """Given back until so many seconds from now, without using up an attempt."""
        until = self._commit.now_at_most() + timedelta(seconds=seconds)
        origin, ran_s = replace(self._origin, reason=reason), self._seconds(attempt)
        self._decide(
            attempt,
            lambda state: decide_snooze(state, until=until, seconds=ran_s, origin=origin),
        )

    def erased(self, attempt: Attempt) -> None:
        """The subject of the job was forgotten: there is nothing left to run it with."""
        origin = replace(self._origin, reason="the subject of its job was forgotten")
        seconds = self._seconds(attempt)
        self._decide(attempt, lambda state: decide_stopped(state, seconds=seconds, origin=origin))

    def stopped(self, attempt: Attempt) -> None:
        """The run was cancelled, and its handler has stopped."""
        self._decide(attempt, self._stop(attempt))

    def _stop(self, attempt: Attempt) -> Outcome:
        seconds = self._seconds(attempt)
        return lambda state: decide_stopped(state, seconds=seconds, origin=self._origin)

    def _decision(self, attempt: Attempt, events: Sequence[OccurrenceEvent]) -> Decision:
        if (traceparent := attempt.span.traceparent) is not None:
            events = [one.model_copy(update={"traceparent": traceparent}) for one in events]
        return decide_on_occurrence(attempt.state, events, name=attempt.ready.name)[0]

    def settle(self, attempt: Attempt, verdict: Verdict) -> None:
        """What the log says about the success of a transactional handler. Where it was refused its
        effect was rolled back: if the run was asked to stop meanwhile, it has stopped."""
        if verdict == "accepted":
            self._measure(attempt, "succeeded")
        self._settled(attempt, self._stop(attempt), verdict)

    def decide_again(
        self, attempt: Attempt, outcome: Outcome, state: OccurrenceState | None
    ) -> None:
        """Decides a refused outcome on ``state``, what the log has now, or gives it up as late."""
        if (
            state is not None
            and state.state in ("running", "stopping")
            and state.attempt == attempt.ready.attempt
            and state.version > attempt.state.version
        ):
            attempt.state = state
            self._submit(attempt, outcome)
            return
        self._counting.add("late_outcomes_refused")
        attempt.span.end("late", {"horolog.outcome": "late"})
        log.warning(
            "the outcome of attempt %d of %s (%s) came late and was refused: it had been given"
            " up as lost",
            attempt.ready.attempt,
            attempt.ready.occurrence,
            attempt.ready.name,
        )
        attempt.held.settle()

    def _decide(self, attempt: Attempt, outcome: Outcome) -> None:
        """Submits the one outcome of an attempt; later ones are without effect.

        An outcome that cannot be had leaves the attempt open for another: no run stays undecided.
        """
        if attempt.take_decision():
            try:
                self._submit(attempt, outcome)
            except BaseException:
                attempt.return_decision()
                raise

    def _submit(self, attempt: Attempt, outcome: Outcome) -> None:
        decision = self._decision(attempt, outcome(attempt.state))

        def settled(verdict: Verdict) -> None:
            if verdict == "accepted" and (self._measured or attempt.span is not NO_SPAN):
                said = decision.events[-1].event
                failures = (e.event.kind for e in decision.events if type(e.event) is Failed)
                self._measure(attempt, outcome_word(said), next(failures, ""))
            self._settled(attempt, outcome, verdict)

        self._commit.submit(decision, settled)

    def _measure(self, attempt: Attempt, outcome: str, failure: str = "") -> None:
        name, queue = attempt.ready.name, attempt.ready.queue
        self._measures.count(
            "attempts_total", name=name, queue=queue, outcome=outcome, failure=failure
        )
        self._measures.observe("run_seconds", self._seconds(attempt), name=name, outcome=outcome)
        attempt.span.end(failure, {"horolog.outcome": outcome})

    def _settled(self, attempt: Attempt, outcome: Outcome, verdict: Verdict) -> None:
        if verdict == "accepted":
            attempt.held.settle()
        else:
            self._refused(attempt, outcome)

    def _seconds(self, attempt: Attempt) -> float:
        # As round(…, 6), which goes by way of a text.
        return int((self._monotonic() - attempt.started_at) * 1e6 + 0.5) / 1e6


def outcome_word(event: Event) -> str:
    """What an attempt ended with, as metrics and spans call it."""
    return event.topic.split(".")[1]


@dataclass(frozen=True, slots=True)
class ErrorSaid:
    """What an exception says: to come back after ``snooze_s``, or what kind of failure it was, and
    after how many seconds to try again, where it says that."""

    kind: FailureKind
    text: str
    after_s: float | None = None
    snooze_s: float | None = None


def read_error(error: BaseException, classification: Classification, now: datetime) -> ErrorSaid:
    """Reads an exception; raises whatever its own code raises, and ``ValueError`` for a wait that
    is none: while another outcome can be had."""
    if isinstance(error, Snooze):
        return ErrorSaid("unknown", "", snooze_s=error.seconds)
    kind = classification.kind(error)
    after_s = error.after if isinstance(error, Retryable) else asked_to_wait_s(error, now)
    if after_s is not None and not 0 <= after_s <= MAX_WAIT_S:
        raise ValueError(f"after={after_s!r} is no wait")
    return ErrorSaid(kind, described(error), after_s)


def described(error: BaseException) -> str:
    """The class and the message of an exception, whatever its ``__str__`` does."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception as second:  # noqa: BLE001 - it is the user's code that runs here
        message = f"(its text cannot be had: {type(second).__name__})"
    return f"{name}: {message}" if message else name
