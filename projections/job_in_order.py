"""A job folded from the log's order: its own events, and the claims that move its schedule on.

A claim of one of the schedule's fire times is in the occurrence's stream and moves the job to the
next one. So a job's own stream says what it is, and only the log's order says where it stands.
"""

from uuid import UUID

from horolog.domain.job import JobState, advance, evolve
from horolog.domain.job_events import FiresSkipped, JobEvent
from horolog.domain.occurrence_events import Claimed


def evolve_in_order(state: JobState | None, job_id: UUID, event: JobEvent) -> JobState:
    """The job after ``event``, the next one of its own; ``state`` has been moved on by the claims
    before it (:func:`moved_by`)."""
    after = evolve(state, job_id, event)
    # A range dropped before the last claim must not move the job back behind that claim.
    if state is not None and type(event) is FiresSkipped and event.fires < state.fires:
        return advance(after, state.next_fire, state.fires)
    return after


def moved_by(state: JobState, claim: Claimed) -> JobState:
    """The job after the claim of an occurrence; that of a retry or an extra run moves nothing."""
    if claim.fires is None or claim.fires <= state.fires:
        return state
    return advance(state, claim.next_fire, claim.fires)
