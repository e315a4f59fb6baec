"""What a fold of the log has to know of the occurrences that have left it.

A job is moved on by the claims of its occurrences, and what it ordered is over when they have
ended. Where those events were pruned, the log says instead what they had come to: without that, a
rebuild would fire everything again.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from horolog.domain.ids import fire_time_floor
from horolog.domain.log_events import OccurrencesPruned, ScheduleMoved


@dataclass(slots=True)
class PrunedRange:
    """Occurrences with ids from ``low`` to below ``high`` left the log at ``position``."""

    low: UUID
    high: UUID
    position: int
    kept: set[UUID] = field(default_factory=set[UUID])


class Pruned:
    """Everything that was ever pruned; grows with the jobs that were moved on, not with the log."""

    def __init__(self, events: Iterable[tuple[int, OccurrencesPruned]] = ()) -> None:
        ranges: dict[tuple[datetime, datetime], PrunedRange] = {}
        moves: list[ScheduleMoved] = []
        for position, event in events:
            span = (event.since, event.until)
            pruned = ranges.setdefault(
                span,
                PrunedRange(fire_time_floor(event.since), fire_time_floor(event.until), position),
            )
            # One account may take several events, and a range may be pruned again later.
            pruned.position = max(pruned.position, position)
            pruned.kept.update(event.kept)
            moves += event.moves
        moves.sort(key=_position)
        self._ranges = list(ranges.values())
        self._moves = moves

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def moves(self, after: int, until: int) -> Sequence[ScheduleMoved]:
        """Those of claims at positions above ``after`` and up to ``until``, in their order."""
        moves = self._moves
        start = bisect_right(moves, after, key=_position)
        return moves[start : bisect_right(moves, until, key=_position)]

    def last_move(self) -> int:
        """The position of the last of them; 0 where there is none."""
        return self._moves[-1].position if self._moves else 0

    def ended(self, occurrence: UUID, ordered_at: int) -> bool:
        """Whether what was ordered at that position has ended and left the log since."""
        return any(
            pruned.low <= occurrence < pruned.high
            and ordered_at < pruned.position
            and occurrence not in pruned.kept
            for pruned in self._ranges
        )


def _position(move: ScheduleMoved) -> int:
    return move.position
