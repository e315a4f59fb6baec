"""A job folded from the log's order: its own events, and the claims that move its schedule on.

A claim of one of the schedule's fire times is in the occurrence's stream and moves the job to the
next one. So a job's own stream says what it is, and only the log's order says where it stands.
"""

from uuid import UUID

from horolog.domain.event import Event
from horolog.domain.job import JobState, advance, evolve
from horolog.domain.job_events import FiresSkipped
from horolog.domain.occurrence_events import Claimed


def evolve_in_order(state: JobState | None, job_id: UUID, event: Event) -> JobState:
    """The job after ``event``, the next one of its own events and of its occurrences' claims."""
    if isinstance(event, Claimed):
        assert state is not None, f"job {job_id} begins with a claim"
        if event.fires is None or event.fires <= state.fires:
            return state
        return advance(state, event.next_fire, event.fires)
    after = evolve(state, job_id, event)
    # A range dropped before the last claim must not move the job back behind that claim.
    if state is not None and isinstance(event, FiresSkipped) and event.fires < state.fires:
        return advance(after, state.next_fire, state.fires)
    return after
