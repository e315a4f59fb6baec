"""Headroom: how much more each ready queue may be given.

The ready queue serves first come, first served. Were all of a flood in it, who comes next would
wait behind all of it, however fairly the claims are drawn. So a queue is given no more than its
workers take within a moment (``ahead_s``) at their present pace, and the rest waits in the index,
where each tenant has its turn.

What lies in a queue is what was not delivered when its consumer was last looked at, and what was
claimed since. A queue that was filled to its bound is closed until a part of that has been taken,
so that claims come in batches; somebody's first run passes all the same, up to half as much again.
The bound follows the pace at which runs are taken; a queue found empty was given too little, and
its bound doubles. So it finds its size within some looks after any change, and while no worker
takes anything next to nothing is claimed in vain.

Several leaders give to one queue without asking each other: all of them see it fill. What they give
between two looks may add up to more than the bound, by as much for each of them.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from horolog.application.scanner.agenda import AMPLE
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.settings import ScannerSettings

LEAST = 16
"""The smallest bound, in runs."""

MOST = 1 << 20

LOOK_S = 0.03
"""How soon a queue is looked at again while it is closed or nearly so."""

LONGEST_LOOK_S = 0.5
"""The same where nothing is taken from it."""

REFILL = 0.75
"""A closed queue is opened when so much of its bound is left: more, and batches are small; less,
and workers may run short before the next batch arrives."""

PACE_S = 1.0
"""Over how long the pace is measured: messages are taken in bursts."""


@dataclass(frozen=True, slots=True)
class Depth:
    """A queue's consumer: messages that were not delivered yet, and how many ever were."""

    waiting: int
    delivered: int


class SeesDepths(Protocol):
    async def depths(self, queues: Collection[str]) -> Mapping[str, Depth]:
        """The queues as they are; one that is not there is empty. Errors: ``QueueUnavailable``."""
        ...


@dataclass(slots=True)
class _Queue:
    """``waiting`` are the runs at the last look, ``given`` those claimed since. ``sizes`` is how
    many runs each message of ours has that is not known to be delivered, ``taken`` when how many
    had been, in all."""

    bound: float
    waiting: int = 0
    given: int = 0
    reserved: int = 0
    closed: bool = False
    delivered: int | None = None
    taken: deque[tuple[float, float]] = field(default_factory=deque[tuple[float, float]])
    next_look: float = 0.0
    pause_s: float = LOOK_S
    sizes: deque[int] = field(default_factory=lambda: deque[int](maxlen=20_000))
    mean_size: float = 1.0

    @property
    def outstanding(self) -> int:
        return self.waiting + self.given + self.reserved

    @property
    def pace(self) -> float:
        """Runs taken a second, of late."""
        if len(self.taken) < 2:
            return 0.0
        (began, first), (ended, last) = self.taken[0], self.taken[-1]
        return (last - first) / max(ended - began, 1e-3)

    def look(self, depth: Depth, now: float) -> int:
        """Takes in what the consumer says; how many messages it delivered since.

        Messages are counted there and runs wanted here. Ours are delivered in their order; those of
        other leaders are taken to be like ours.
        """
        messages = 0 if self.delivered is None else max(0, depth.delivered - self.delivered)
        ours = [self.sizes.popleft() for _ in range(min(messages, len(self.sizes)))]
        if ours:
            self.mean_size = sum(ours) / len(ours)
        before = self.taken[-1][1] if self.taken else 0.0
        self.taken.append((now, before + messages * self.mean_size))
        while len(self.taken) > 2 and self.taken[1][0] <= now - PACE_S:
            self.taken.popleft()
        self.delivered = depth.delivered
        while len(self.sizes) > depth.waiting:
            self.sizes.popleft()
        mean = sum(self.sizes) / len(self.sizes) if self.sizes else self.mean_size
        self.waiting = round(depth.waiting * mean)
        return messages


class Headroom:
    """By queue; times are monotonic seconds."""

    def __init__(self, settings: ScannerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._queues: dict[str, _Queue] = {}

    def room(self, queue: str, first: bool = False) -> int:
        """How many more runs the queue may be given now; ``first``: of somebody who has none."""
        state = self._queues.get(queue)
        if state is None:
            return max(LEAST, self._settings.ahead_first)
        if first:
            return max(0, int(state.bound * 1.5) - state.outstanding)
        room = int(state.bound) - state.outstanding
        if room <= 0 and not state.closed:
            state.closed = True
            state.next_look = min(state.next_look, self._clock.monotonic() + LOOK_S)
        return 0 if state.closed else min(room, AMPLE)

    def reserve(self, queues: Counter[str]) -> None:
        """Entries of the queues were drawn; ``settle`` follows with the same."""
        for queue, count in queues.items():
            self._state(queue).reserved += count

    def settle(self, queues: Counter[str]) -> None:
        for queue, count in queues.items():
            self._state(queue).reserved -= count

    def given(self, queue: str, count: int) -> None:
        """Runs of the queue were claimed."""
        self._state(queue).given += count

    def sent(self, queue: str, runs: int) -> None:
        """A message with so many runs is in the queue."""
        self._state(queue).sizes.append(runs)

    @property
    def outstanding(self) -> int:
        """Runs that the queues hold, or are about to."""
        return sum(state.outstanding for state in self._queues.values())

    @property
    def closed(self) -> list[str]:
        """The queues that are given nothing for now."""
        return [queue for queue, state in self._queues.items() if state.closed]

    @property
    def bounds(self) -> dict[str, int]:
        return {queue: int(state.bound) for queue, state in self._queues.items()}

    def to_look_at(self) -> list[str]:
        """The queues that are closed or nearly so, and due for a look."""
        now = self._clock.monotonic()
        return [
            queue
            for queue, state in self._queues.items()
            if _wanted(state) and state.next_look <= now
        ]

    def next_look_s(self) -> float | None:
        """In how many seconds the next is due."""
        now = self._clock.monotonic()
        looks = [state.next_look for state in self._queues.values() if _wanted(state)]
        return max(0.0, min(looks) - now) if looks else None

    def begin_look(self, queues: Sequence[str]) -> dict[str, int]:
        """What was given up to now; for ``observe``."""
        return {queue: self._queues[queue].given for queue in queues}

    def observe(
        self, queue: str, depth: Depth, *, given_before: int, unpublished_before: int
    ) -> bool:
        """Takes in a look; whether the queue was opened by it.

        ``unpublished_before``: claims that were on their way when the look began.
        """
        state, now = self._queues[queue], self._clock.monotonic()
        is_first = state.delivered is None
        taken = state.look(depth, now)
        state.waiting += unpublished_before
        state.given -= given_before
        self._size(state)
        # The first look has nothing to compare with.
        moved = taken > 0 or state.waiting == 0 or is_first
        state.pause_s = LOOK_S if moved else min(LONGEST_LOOK_S, state.pause_s * 2)
        state.next_look = now + state.pause_s
        if state.closed and state.outstanding <= state.bound * REFILL:
            state.closed = False
            return True
        return False

    def _size(self, state: _Queue) -> None:
        if len(state.taken) < 2:
            return
        wanted = state.pace * self._settings.ahead_s
        if state.waiting == 0:
            # Given too little, it had no chance to show its pace.
            grown = state.bound * 2 if state.closed else state.bound
            bound = min(grown, max(state.bound * 0.9, 1.5 * wanted))
        else:
            bound = max(wanted, state.bound * 0.8)
        state.bound = min(MOST, max(LEAST, bound))

    def _state(self, queue: str) -> _Queue:
        state = self._queues.get(queue)
        if state is None:
            state = self._queues[queue] = _Queue(max(LEAST, self._settings.ahead_first))
        return state


def _wanted(state: _Queue) -> bool:
    return state.closed or state.outstanding > state.bound / 2


class Gauging:
    """Looks at the queues that are nearly full; one :meth:`step` is one look."""

    def __init__(
        self, headroom: Headroom, unpublished: Callable[[str], int], *, queue: SeesDepths
    ) -> None:
        self._headroom = headroom
        self._unpublished = unpublished
        self._queue = queue
        self.opened = False
        """Whether the last step opened a queue."""

    async def step(self) -> float | None:
        """One look; seconds to the next, ``None`` while no queue is nearly full."""
        self.opened = False
        queues = self._headroom.to_look_at()
        if queues:
            given = self._headroom.begin_look(queues)
            unpublished = {queue: self._unpublished(queue) for queue in queues}
            depths = await self._queue.depths(queues)
            for queue in queues:
                self.opened |= self._headroom.observe(
                    queue,
                    depths[queue],
                    given_before=given[queue],
                    unpublished_before=unpublished[queue],
                )
        return self._headroom.next_look_s()
