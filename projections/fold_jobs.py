"""The jobs of a window: their own events, the claims that move them on, and what they order."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from horolog.domain.job import JobState
from horolog.domain.job_events import JobEvent, Registered
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.occurrence_events import Claimed
from horolog.domain.orders import ordered_by
from horolog.projections.changes import Changes, DatedJob, Entry, Placed, Standing, misplaced
from horolog.projections.job_in_order import evolve_in_order, moved_by
from horolog.projections.pruned import Pruned
from horolog.projections.rows import job_next_run, job_row


class JobFold:
    """Folds one job after the other into ``changes``.

    ``ends`` has the last position of the append at each instant, ``broken`` the streams of which an
    event is passed over.
    """

    def __init__(
        self,
        changes: Changes,
        ends: Mapping[datetime, int],
        pruned: Pruned,
        broken: AbstractSet[UUID],
    ) -> None:
        self.orders: dict[UUID, tuple[OccurrenceState, datetime]] = {}
        """What was ordered in the window and has not left the log since, and when."""
        self._changes = changes
        self._ends = ends
        self._pruned = pruned
        self._broken = broken

    def fold(self, job_id: UUID, before: JobState | None, steps: list[Entry]) -> None:
        """``steps``: the job's events and its claims, in the order of their positions."""
        state, written, changed_at = before, None, None
        told = False
        for entry in steps:
            event = entry[3]
            if type(event) is Claimed:
                state = self._moved(state, job_id, entry, event)
            elif isinstance(event, JobEvent):
                told = True
                after = self._evolved(state, job_id, entry, event)
                if after is not state and after is not None:
                    # A claim moves the index on and leaves this row as it is.
                    written, changed_at = after, entry[1]
                    self._order(after, event, entry)
                state = after
        if state is None:
            return
        self._changes.job_states[job_id] = state
        if written is not None and changed_at is not None:
            registered_at = steps[0][1] if before is None else None
            self._changes.jobs[job_id] = DatedJob(job_row(written), registered_at, changed_at)
        if told:
            self._index(state, steps[-1])
        else:
            self._changes.index[job_id] = Standing(state, self._ends[steps[-1][1]])

    def _moved(
        self, state: JobState | None, job_id: UUID, entry: Entry, claim: Claimed
    ) -> JobState | None:
        if state is None:
            if job_id in self._broken:
                return None
            raise misplaced(entry, job_id, f"the log has no job {job_id} before it")
        return moved_by(state, claim)

    def _evolved(
        self, before: JobState | None, job_id: UUID, entry: Entry, event: JobEvent
    ) -> JobState | None:
        version = entry[2]
        if (before is None) is not (type(event) is Registered):
            if job_id in self._broken:
                return before
            raise misplaced(entry, job_id, "a job begins with job.registered.1, and only once")
        present = 0 if before is None else before.version
        if version <= present:
            raise misplaced(entry, job_id, f"the job is at version {present} before it")
        try:
            state = evolve_in_order(before, job_id, event)
        except ValueError as error:
            raise misplaced(entry, job_id, str(error)) from error
        # Where an event before this one is passed over.
        return state if state.version == version else replace(state, version=version)

    def _order(self, state: JobState, event: JobEvent, entry: Entry) -> None:
        for waiting in ordered_by(state, event, entry[1]):
            if not (self._pruned and self._pruned.ended(waiting.id, entry[0])):
                self.orders[waiting.id] = (waiting, entry[1])

    def _index(self, state: JobState, last: Entry) -> None:
        try:
            row = job_next_run(state)
        except ValueError as error:  # a schedule that this release cannot read
            raise misplaced(last, state.id, str(error)) from error
        placed = None
        if row is not None:
            assert row.due_at is not None
            placed = Placed(row, row.due_at, self._ends[last[1]])
        self._changes.index[state.id] = placed
