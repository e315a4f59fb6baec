"""What has been folded and is not written yet, as the states before the next window.

Most rows of the index change with every firing. Written once for many windows, and not at all where
they have come and gone between two writings, they cost little beside the reading of the log.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.projections.changes import Changes, KnowsBefore

MOST_ROWS: Final = 50_000
"""Rows that wait to be written, at most. With the states beside them some 100 MB."""

MOST_EVENTS: Final = 1_000_000
"""Events between two writings, at most: what is done again after a kill."""

MOST_JOBS: Final = 50_000
"""Jobs whose states are kept after they were written: most of them fire again soon."""


class Pending:
    """As :class:`horolog.projections.changes.KnowsBefore` promises: what waits, and beneath it what
    was written."""

    def __init__(self, written: KnowsBefore, position: int) -> None:
        self._written = written
        self._states: dict[UUID, JobState] = {}
        self.changes = Changes(position)

    @property
    def full(self) -> bool:
        return self.changes.rows >= MOST_ROWS or self.changes.events >= MOST_EVENTS

    def jobs(self, ids: Sequence[UUID]) -> Mapping[UUID, JobState]:
        states = self._states
        if missing := [job_id for job_id in ids if job_id not in states]:
            states |= self._written.jobs(missing)
        return states

    def occurrences(self, ids: Sequence[UUID]) -> Mapping[UUID, OccurrenceState]:
        waiting = self.changes.occurrence_states
        if missing := [identity for identity in ids if identity not in waiting]:
            return {**waiting, **self._written.occurrences(missing)}
        return waiting

    def add(self, changes: Changes) -> None:
        """The next window was folded."""
        self._states.update(changes.job_states)
        changes.job_states = {}
        self.changes.add(changes)

    def written(self) -> None:
        """Everything that waited was written."""
        self.changes = Changes(self.changes.position)
        if len(self._states) > MOST_JOBS:
            self._states.clear()

    def taken_back(self, position: int) -> None:
        """What was written last was not written after all: the position is this one again."""
        self._states.clear()
        self.changes = Changes(position)
