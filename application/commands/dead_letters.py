"""Dead letters: a person's order to try one again under its own key, or to close it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from horolog.application.commands.changing import known_job
from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.decision import decide_on_occurrence
from horolog.domain.errors import InvalidPolicy, NotAllowed, UnknownOccurrence
from horolog.domain.job import refuse_if
from horolog.domain.occurrence import OccurrenceState, decide_discard, decide_replay
from horolog.domain.occurrence_events import OccurrenceEvent

PAGE = 200

MAX_RATE = 1_000.0


class FindsDeadLetters(Protocol):
    """Errors: ``StoreUnavailable``."""

    def dead(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> Sequence[UUID]:
        """The dead letters with this owner and handler (any, where absent), in the order of ids."""
        ...


def replay(
    context: Context, occurrence_id: UUID, *, in_s: float = 0.0, reason: str | None = None
) -> OccurrenceState:
    """Tries a dead letter again, at once or ``in_s`` seconds, with a fresh budget of attempts.

    Raises ``UnknownOccurrence``; ``NotAllowed`` where it is no dead letter or its job is cancelled.
    """
    origin = context.origin(reason)

    def decide(state: OccurrenceState) -> list[OccurrenceEvent]:
        events = decide_replay(
            state, now=context.clock.now() + timedelta(seconds=in_s), origin=origin
        )
        refuse_if(known_job(context, state.job_id), {"cancelled"}, "replay a run of")
        return events

    return _decide(context, occurrence_id, decide)


def discard(context: Context, occurrence_id: UUID, *, reason: str | None = None) -> OccurrenceState:
    """Closes a dead letter for good; discarding it again changes nothing.

    Raises ``UnknownOccurrence``; ``NotAllowed`` where it is no dead letter.
    """
    origin = context.origin(reason)
    return _decide(context, occurrence_id, lambda state: decide_discard(state, origin=origin))


def replay_many(
    context: Context,
    letters: FindsDeadLetters,
    *,
    owner: str | None = None,
    name: str | None = None,
    most: int | None = None,
    rate: float | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> int:
    """Replays the dead letters of an owner or a handler, oldest first, ``most`` of them at most.

    ``rate`` has them begin so many a second, so that what they were too much for is not met by all
    of them at once; without it they begin now.

    Returns how many were replayed, or would be (``dry_run``). Those that somebody else has replayed
    or discarded meanwhile, and those of cancelled jobs, are passed over.
    """
    if rate is not None and not 0 < rate <= MAX_RATE:
        raise InvalidPolicy(f"rate={rate!r}: from just above 0 to {MAX_RATE} runs a second")
    replayed = 0
    for identity in _dead(letters, owner, name):
        if most is not None and replayed >= most:
            break
        if not dry_run:
            try:
                in_s = 0.0 if rate is None else replayed / rate
                replay(context, identity, in_s=in_s, reason=reason)
            except (NotAllowed, UnknownOccurrence):
                continue
        replayed += 1
    return replayed


def _dead(letters: FindsDeadLetters, owner: str | None, name: str | None) -> Iterator[UUID]:
    last: UUID | None = None
    while page := letters.dead(owner=owner, name=name, after=last, limit=PAGE):
        yield from page
        last = page[-1]


def _decide(
    context: Context,
    occurrence_id: UUID,
    decide: Callable[[OccurrenceState], Sequence[OccurrenceEvent]],
) -> OccurrenceState:
    for _ in range(MAX_TRIES):
        before = context.states.occurrence(occurrence_id)
        if before is None:
            raise UnknownOccurrence(
                f"no occurrence has the id {occurrence_id} in namespace {context.namespace!r}"
            )
        events = decide(before)
        if not events:
            return before
        decision, after = decide_on_occurrence(before, events)
        if context.accepts(decision) is not None:
            return after
    raise too_busy(f"occurrence {occurrence_id}")
