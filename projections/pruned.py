"""What a fold of the log has to know of the occurrences that have left it.

A job is moved on by the claims of its occurrences, and what it ordered is over when they have
ended. Where those events were pruned, the log says instead what they had come to: without that, a
rebuild would fire everything again.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
        self._ranges: list[PrunedRange] = []
        self._moves: list[ScheduleMoved] = []
        for account in _accounts(events):
            position, last = account[-1]
            low, high = fire_time_floor(last.since), fire_time_floor(last.until)
            kept = {identity for _, event in account for identity in event.kept}
            self._ranges.append(PrunedRange(low, high, position, kept))
            self._moves += (move for _, event in account for move in event.moves)
        self._moves.sort(key=_position)

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


def _accounts(
    events: Iterable[tuple[int, OccurrencesPruned]],
) -> Iterator[list[tuple[int, OccurrencesPruned]]]:
    """The events of each account that was brought to its end."""
    begun: dict[UUID | None, list[tuple[int, OccurrencesPruned]]] = {}
    for position, event in events:
        account = begun.setdefault(event.correlation, [])
        account.append((position, event))
        if not event.more:
            yield begun.pop(event.correlation)


def _position(move: ScheduleMoved) -> int:
    return move.position
