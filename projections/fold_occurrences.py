"""The occurrences of a window: what begins and ends within it never becomes a row of the index."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from horolog.domain.occurrence import FINISHED, OccurrenceState, evolve
from horolog.domain.occurrence_events import Claimed, DeadLettered, Discarded, Skipped, Succeeded
from horolog.projections.changes import Changes, Entry, Placed, misplaced
from horolog.projections.rows import dead_letter, execution, occurrence_next_run

_ENDING: Final = frozenset({Succeeded, Skipped, Discarded})


class OccurrenceFold:
    """Folds one occurrence after the other into ``changes``; see :class:`JobFold`."""

    def __init__(
        self,
        changes: Changes,
        ends: Mapping[datetime, int],
        broken: AbstractSet[UUID],
        *,
        executions: bool,
    ) -> None:
        self._changes = changes
        self._ends = ends
        self._broken = broken
        self._executions = executions

    def fold(
        self,
        identity: UUID,
        before: OccurrenceState | None,
        life: list[Entry],
        *,
        indexed: bool,
    ) -> None:
        """``indexed``: a row of it may stand in the index."""
        dead = before is not None and before.state == "dead"
        if not self._executions and not dead and type(life[-1][3]) in _ENDING:
            # Nothing of it stays but the schedule's move, which its job has taken already.
            if indexed:
                self._changes.index[identity] = None
            return
        state, letter = self._lived(identity, before, life)
        if state is None:
            return
        at = life[-1][1]
        if dead and state.state != "dead":
            self._changes.dead_letters[identity] = None
        if state.state not in FINISHED:
            self.put(state, at, born=not indexed or dead)
            if dead:
                self._changes.executions[identity] = None
            return
        if indexed:
            self._changes.index[identity] = None
        if self._executions:
            self._changes.executions[identity] = (execution(state), at)
        if state.state == "dead":
            self._changes.occurrence_states[identity] = state
            if letter is not None:
                self._changes.dead_letters[identity] = (dead_letter(state, letter, ""), at)

    def _lived(
        self, identity: UUID, before: OccurrenceState | None, life: list[Entry]
    ) -> tuple[OccurrenceState | None, DeadLettered | None]:
        """The state after ``life``, and the last event of it that gave the occurrence up."""
        state, letter = before, None
        for entry in life:
            event = entry[3]
            if state is None and type(event) is not Claimed and identity in self._broken:
                continue
            state = self._evolved(state, identity, entry)
            if type(event) is DeadLettered:
                letter = event
        return state, letter

    def put(self, state: OccurrenceState, at: datetime, *, born: bool) -> None:
        """The row of an unfinished one, whose last event or order was recorded ``at``."""
        row = occurrence_next_run(state)
        due_at = row.due_at
        if due_at is None:
            assert row.look_after_s is not None
            due_at = at + timedelta(seconds=row.look_after_s)
        self._changes.index[state.id] = Placed(row, due_at, self._ends[at])
        self._changes.occurrence_states[state.id] = state
        if born:
            self._changes.born.add(state.id)

    def _evolved(
        self, before: OccurrenceState | None, identity: UUID, entry: Entry
    ) -> OccurrenceState:
        version, event = entry[2], entry[3]
        if before is None and type(event) is not Claimed:
            raise misplaced(entry, identity, "nothing of its occurrence is in the log before it")
        present = 0 if before is None else before.version
        if version <= present:
            raise misplaced(entry, identity, f"the occurrence is at version {present} before it")
        state = evolve(before, identity, event)
        # Where an event before this one is passed over.
        return state if state.version == version else replace(state, version=version)
