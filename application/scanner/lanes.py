"""Lanes that somebody waits for: what a leader remembers of them, and when it looks at each.

The log refuses a claim whose lane is full and puts its row into the lane, out of the index's fires.
Here is known which lanes have such rows, so that a row which comes later is not tried before them,
and when it is worth looking whether one may go: at once when a slot is told to be free, when a rate
has filled again, and every while in case nobody told. It is a memory and no record: what it forgets
a page of the index brings back.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

from horolog.domain.lanes import Lane

REFUSED_PAUSE_S = 0.05
"""How soon a lane is looked at after a refusal: a slot may have become free meanwhile."""

UNTOLD_PAUSE_S = 2.0
"""How soon it is looked at where nobody told of a free slot."""

SHORTEST_PAUSE_S = 0.02

MOST = 500
"""The most rows of a lane in one look."""

FEW = 4
"""The same where its limits are not known yet: their claims will tell."""


@dataclass(slots=True)
class Waiting:
    """A lane in which rows wait. ``limit`` and ``rate`` are those of the last claim, where any is
    known."""

    name: str
    limit: int | None = None
    rate: float | None = None
    look_at: float = 0.0

    @property
    def most(self) -> int:
        """The most rows to bring at one look."""
        if self.limit is None and self.rate is None:
            return FEW
        return MOST if self.rate is None else min(MOST, 1 + int(self.rate * self.pause_s))

    @property
    def pause_s(self) -> float:
        """Until the next look, where nothing is told before."""
        if self.rate is None:
            return UNTOLD_PAUSE_S
        return min(UNTOLD_PAUSE_S, max(SHORTEST_PAUSE_S, 1 / self.rate))


class WaitingLanes:
    """By name; times are monotonic seconds."""

    def __init__(self) -> None:
        self._lanes: dict[str, Waiting] = {}
        self._looks: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._lanes)

    def __contains__(self, name: str) -> bool:
        return name in self._lanes

    def refused(self, lane: Lane, now: float) -> None:
        """The log found the lane full: a row waits in it."""
        known = self._lanes.get(lane.name)
        if known is None:
            known = self._lanes[lane.name] = Waiting(lane.name, look_at=now + UNTOLD_PAUSE_S)
            heappush(self._looks, (known.look_at, known.name))
        self._limit(known, lane)
        self._look_by(known, now + min(REFUSED_PAUSE_S, known.pause_s))

    def limited(self, lane: Lane) -> None:
        """What a claim says of the lane's limits now."""
        known = self._lanes.get(lane.name)
        if known is not None:
            self._limit(known, lane)

    def found(self, name: str, now: float) -> None:
        """Rows wait in the lane: the index says so."""
        if name not in self._lanes:
            self._lanes[name] = Waiting(name, look_at=now)
            heappush(self._looks, (now, name))

    def told(self, name: str, now: float) -> bool:
        """A slot is free, or the limit was changed; whether anybody here waits for that."""
        known = self._lanes.get(name)
        if known is None:
            return False
        self._look_by(known, now)
        return True

    def due(self, now: float, most: int) -> list[Waiting]:
        """The lanes to look at now, each of which is looked at again after its pause."""
        due: list[Waiting] = []
        while self._looks and self._looks[0][0] <= now and len(due) < most:
            look_at, name = heappop(self._looks)
            known = self._lanes.get(name)
            if known is None or known.look_at != look_at:
                continue
            due.append(known)
            known.look_at = now + known.pause_s
            heappush(self._looks, (known.look_at, name))
        return due

    def empty(self, name: str) -> None:
        """Nobody waits in the lane any more."""
        self._lanes.pop(name, None)

    def next_look(self) -> float | None:
        """When the next lane is due."""
        while self._looks:
            look_at, name = self._looks[0]
            known = self._lanes.get(name)
            if known is not None and known.look_at == look_at:
                return look_at
            heappop(self._looks)
        return None

    def _limit(self, known: Waiting, lane: Lane) -> None:
        # A lane that is closed to latecomers (limit 0) says nothing of its limit.
        if lane.limit != 0:
            known.limit, known.rate = lane.limit, lane.rate

    def _look_by(self, known: Waiting, at: float) -> None:
        if at < known.look_at:
            known.look_at = at
            heappush(self._looks, (at, known.name))
