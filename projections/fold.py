"""The read models from the log alone: what a window of events changes in their rows.

The same states and rows as behind every append (``domain.job``, ``domain.occurrence``,
``domain.orders``, ``projections.rows``), only that nothing is decided here: it has happened. Pure:
the states before the window come from whoever keeps them.

Events are taken in the log's order. A job's own events and the claims that move it on lie in
different streams; they are sorted out first and then folded, each job and each occurrence for
itself, jobs first: what they order waits for its claim.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from horolog.domain import alert_events, job_events, log_events, subject_events
from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import read_event, unreadable
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence_events import Attempted, Claimed, OccurrenceEvent, Succeeded
from horolog.domain.partition import Elected, Released
from horolog.projections.changes import (
    BEGAN_AND_ENDED,
    PROJECTIONS,
    Changes,
    Entry,
    KnowsBefore,
    Led,
    LogRow,
    stopped,
)
from horolog.projections.fold_jobs import JobFold
from horolog.projections.fold_occurrences import OccurrenceFold
from horolog.projections.pruned import Pruned

# A topic can be read once the module that declares its event is imported.
_DECLARING: Final = (alert_events, job_events, log_events, subject_events)

# The three of every ordinary run, past the look-up in the registry.
_READERS: Final = {
    event.topic: event.__pydantic_validator__.validate_json
    for event in (Claimed, Attempted, Succeeded)
}


def fold_window(
    rows: Sequence[LogRow],
    after: int,
    before: KnowsBefore,
    *,
    wanted: AbstractSet[str] = frozenset(PROJECTIONS),
    pruned: Pruned | None = None,
    skipped: Mapping[int, UUID] | None = None,
    until: int | None = None,
) -> Changes:
    """What ``rows``, the events after the position ``after`` up to ``until`` or to their last,
    change.

    ``rows`` hold appends whole. ``wanted`` names the projections that are asked for; the index, the
    jobs and the dead letters are always folded, because later windows rest on them. ``skipped`` are
    the positions of events to pass over, with their streams: what cannot be without them is passed
    over too. Raises ``ProjectionStopped``, which names the event, for one that cannot be read or
    cannot follow what is before it.
    """
    window = _Window(skipped or {})
    for row in rows:
        window.sort(row)
    changes = window.changes
    changes.events = len(rows)
    changes.position = until or (rows[-1][0] if rows else after)
    pruned = pruned or Pruned()
    window.insert_moves(pruned, after)
    jobs = JobFold(changes, window.ends, pruned, window.broken)
    states = before.jobs(list(window.steps))
    for job_id, steps in window.steps.items():
        jobs.fold(job_id, states.get(job_id), steps)
    executions = "executions" in wanted
    occurrences = OccurrenceFold(changes, window.ends, window.broken, executions=executions)
    window.fold_lives(occurrences, jobs, before)
    _name_letters(changes, before)
    return changes


class _Window:
    """The events of a window, by what they are folded into."""

    def __init__(self, skipped: Mapping[int, UUID]) -> None:
        self.changes = Changes()
        self.ends: dict[datetime, int] = {}
        self.steps: dict[UUID, list[Entry]] = {}
        self.lives: dict[UUID, list[Entry]] = {}
        self.over: set[UUID] = set()
        """What was ordered, began and ended; its row in the index, if there was one, goes."""
        self.broken = frozenset(skipped.values())
        self._skipped = skipped

    def sort(self, row: LogRow) -> None:
        """Reads the event and puts it where it is folded."""
        position, at, stream, version, topic, state, end = row
        self.ends[at] = end or position
        if position in self._skipped:
            return
        try:
            reader = _READERS.get(topic)
            event = read_event(topic, state) if reader is None else reader(state)
        except (ValueError, UnreadableEvent) as error:
            raise stopped(position, stream, version or 1, topic, unreadable(error)) from error
        entry = (position, at, version, event)
        if version == BEGAN_AND_ENDED:
            self._passed(stream, entry)
            return
        # Asking pydantic's classes for an instance costs more than all else here.
        if reader is not None or isinstance(event, OccurrenceEvent):
            life = self.lives.get(stream)
            if life is None:
                self.lives[stream] = [entry]
            else:
                life.append(entry)
            if type(event) is Claimed and event.fires is not None:
                self.steps.setdefault(event.job_id, []).append(entry)
            return
        match event:
            case JobEvent():
                self.steps.setdefault(stream, []).append(entry)
            case Elected(partition=partition, instance=instance):
                self.changes.leaders[partition] = Led(partition, version, instance, version)
            case Released(partition=partition):
                self.changes.leaders[partition] = Led(partition, version, None, None)
            case _:
                pass

    def _passed(self, stream: UUID, entry: Entry) -> None:
        """What began and ended in the window moves its job on, and leaves nothing else."""
        event = entry[3]
        assert isinstance(event, Claimed)
        if event.fires is not None:
            steps = self.steps.get(event.job_id)
            if steps is None:
                self.steps[event.job_id] = [entry]
            else:
                steps.append(entry)
        if event.kind != "schedule":
            self.over.add(stream)

    def insert_moves(self, pruned: Pruned, after: int) -> None:
        """The claims that left the log, where they stood: a later reschedule outdoes them."""
        for move in pruned.moves(after, self.changes.position):
            claim = Claimed.model_construct(
                job_id=move.job_id, fires=move.fires, next_fire=move.next_fire
            )
            self.ends.setdefault(move.recorded_at, move.append_position)
            steps = self.steps.setdefault(move.job_id, [])
            steps.append((move.position, move.recorded_at, 0, claim))
            steps.sort(key=_position)

    def fold_lives(self, occurrences: OccurrenceFold, jobs: JobFold, before: KnowsBefore) -> None:
        orders = jobs.orders
        for identity in orders.keys() - self.lives.keys() - self.over:
            occurrences.put(*orders[identity], born=True)
        for identity in self.over - orders.keys():
            self.changes.index[identity] = None
        wanted = [
            identity
            for identity, life in self.lives.items()
            if life[0][2] > 1 or type(life[0][3]) is not Claimed
        ]
        known = before.occurrences(wanted)
        for identity, life in self.lives.items():
            first = life[0][3]
            if orders and identity in orders:
                occurrences.fold(identity, orders[identity][0], life, indexed=False)
            elif known and identity in known:
                occurrences.fold(identity, known[identity], life, indexed=True)
            else:
                # What was ordered in an earlier window waits in the index for this first claim.
                ordered = type(first) is Claimed and first.kind != "schedule"
                occurrences.fold(identity, None, life, indexed=ordered)


def _name_letters(changes: Changes, before: KnowsBefore) -> None:
    """Gives the dead letters the names of their handlers."""
    letters = {i: letter for i, letter in changes.dead_letters.items() if letter is not None}
    jobs = dict(changes.job_states)
    if unknown := {letter.job_id for letter, _ in letters.values()} - jobs.keys():
        jobs |= before.jobs(list(unknown))
    for identity, (letter, since) in letters.items():
        if letter.job_id in jobs:
            named = replace(letter, name=jobs[letter.job_id].definition.name)
            changes.dead_letters[identity] = (named, since)


def _position(entry: Entry) -> int:
    return entry[0]
