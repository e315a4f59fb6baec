"""Cancelling one run: what has not begun does not run, what runs is asked to stop."""

from uuid import UUID

from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.decision import decide_on_occurrence
from horolog.domain.errors import NotAllowed, UnknownOccurrence
from horolog.domain.occurrence import OccurrenceState, decide_cancel


def cancel_occurrence(
    context: Context, occurrence_id: UUID, *, reason: str | None = None
) -> OccurrenceState:
    """An operator's order that a run end without success; its job goes on.

    A run that has begun is asked to stop and ends as it does. Cancelling again changes nothing.
    Raises ``UnknownOccurrence``; ``NotAllowed`` for one that has ended otherwise.
    """
    origin = context.origin(reason)
    for _ in range(MAX_TRIES):
        before = context.states.occurrence(occurrence_id)
        if before is None:
            raise UnknownOccurrence(
                f"no occurrence has the id {occurrence_id} in namespace {context.namespace!r}"
            )
        if before.finished and before.state != "skipped":
            raise NotAllowed(
                f"cannot cancel occurrence {occurrence_id}: it is {before.state} already"
            )
        events = decide_cancel(before, "cancelled", origin=origin)
        if not events:
            return before
        decision, after = decide_on_occurrence(before, events)
        if context.accepts(decision) is not None:
            return after
    raise too_busy(f"occurrence {occurrence_id}")
