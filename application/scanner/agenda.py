"""What an instance knows to be due, now and soon: the wheel, and behind it a queue for each flow.

A flow is what one tenant (the jobs of a concurrency key, or else of a handler) has due in one
queue, partition and priority. What the wheel lets go waits in its flow, and batches are drawn from
the flows in turn: whoever floods the index waits behind himself. Of several priorities the highest
gets half of a batch, the next half of what is left, and so on, and what one of them does not use is
the others': a higher one goes first and no lower one stands still. Flows of a ready queue that
holds enough are passed over, but for the first entry of one that was empty (see headroom).

An entry that is being claimed is known too: the sweep, which reads rows that are not claimed yet,
does not bring it in a second time, and news that arrives about it meanwhile is kept until the claim
is settled.

What is due and waits is bounded. Beyond the bound a queue that has its share of it already gets
only the first entries of small flows; the rest is left behind in the index, in its order, and
fetched from there when the queue runs short of entries. So a queue that nobody works at, however
long, takes neither the memory nor the place of the others, nor does a tenant's flood.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from uuid import UUID

from horolog.application.scanner.left_behind import LeftBehind
from horolog.application.scanner.wheel import Entry, Wheel

_Flow = tuple[int, str, str]
"""Partition, queue, tenant; within one priority."""

AMPLE = 1 << 30

SMALL = 1_000
"""A flow is small that has less than the bound divided by this, or nothing."""

FOR_SMALL = 1.25
"""How far the bound is exceeded for small flows; for those that have nothing, by as much again as
it is."""

Room = Callable[[str, bool], int]
"""How many more runs a ready queue may be given: of anybody, or of somebody who has none yet."""


def _ample(queue: str, first: bool) -> int:
    del queue, first
    return AMPLE


class _Level:
    """The flows of one priority, in turn. ``fresh`` are those that were not drawn from since they
    were empty."""

    def __init__(self) -> None:
        self.flows: dict[_Flow, deque[Entry]] = {}
        self.turn: deque[_Flow] = deque()
        self.fresh: set[_Flow] = set()
        self.fresh_in: Counter[tuple[int, str]] = Counter()

    def put(self, entry: Entry) -> None:
        flow = (entry.partition, entry.queue, entry.tenant)
        queue = self.flows.get(flow)
        if queue is None:
            queue = self.flows[flow] = deque()
            self.turn.append(flow)
            self.fresh.add(flow)
            self.fresh_in[flow[:2]] += 1
        queue.append(entry)

    def draw(self, limit: int, partitions: Collection[int], rooms: "_Rooms") -> list[Entry]:
        drawn: list[Entry] = []
        passed_over = 0
        # A slice at a time: nearly as fair as one by one, and much cheaper.
        most = max(1, limit // max(64, len(self.turn)))
        while len(drawn) < limit and passed_over < len(self.turn):
            flow = self.turn[0]
            partition, queue, _ = flow
            room = 0
            if partition in partitions:
                room = rooms.of(queue) or (flow in self.fresh and rooms.for_first(queue))
            if room <= 0:
                passed_over += 1
                self.turn.rotate(-1)
                continue
            passed_over = 0
            self._grown_old(flow)
            entries = self.flows[flow]
            count = min(len(entries), most, limit - len(drawn), room)
            drawn += [entries.popleft() for _ in range(count)]
            rooms.use(queue, count)
            if entries:
                self.turn.rotate(-1)
            else:
                self.turn.popleft()
                del self.flows[flow]
        return drawn

    def forget(self, partition: int) -> list[Entry]:
        gone = [flow for flow in self.flows if flow[0] == partition]
        self.turn = deque(flow for flow in self.turn if flow[0] != partition)
        for flow in gone:
            self._grown_old(flow)
        return [entry for flow in gone for entry in self.flows.pop(flow)]

    def _grown_old(self, flow: _Flow) -> None:
        if flow in self.fresh:
            self.fresh.discard(flow)
            self.fresh_in[flow[:2]] -= 1
            if not self.fresh_in[flow[:2]]:
                del self.fresh_in[flow[:2]]


class _Rooms:
    """What is left of each queue's room within one draw; entries of unknown queues are let by."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._left: dict[str, int] = {}
        self._used: Counter[str] = Counter()

    def of(self, queue: str) -> int:
        if not queue:
            return AMPLE
        left = self._left.get(queue)
        if left is None:
            left = self._left[queue] = self._room(queue, False)
        return max(0, left - self._used[queue])

    def for_first(self, queue: str) -> int:
        """One, while there is room for first runs."""
        return min(1, self._room(queue, True) - self._used[queue])

    def use(self, queue: str, count: int) -> None:
        self._used[queue] += count


_NOTHING: dict[str, int] = {}


class Agenda:
    """Entries by id; each is in the wheel, in a flow, or in hand. ``room`` says of each ready queue
    how much more it may be given."""

    def __init__(self, wheel: Wheel, *, room: Room = _ample, capacity: int = 1_000_000) -> None:
        self.wheel = wheel
        self._room = room
        self._capacity = capacity
        self._levels: dict[int, _Level] = {}
        self._queued: set[UUID] = set()
        # By queue, and by partition and queue; plain dicts, for each entry is counted twice.
        self._counts: dict[int, dict[str, int]] = {}
        self._of_queue: dict[str, int] = {}
        self._in_hand: dict[UUID, Entry | None] = {}
        self.left_behind = LeftBehind()

    def __len__(self) -> int:
        return len(self.wheel) + len(self._queued) + len(self._in_hand)

    @property
    def waiting(self) -> int:
        """How much is due and not claimed."""
        return len(self._queued)

    @property
    def ready(self) -> int:
        """How much of that may be claimed now."""
        return sum(self.ready_in(partition) for partition in self._counts)

    @property
    def held_back(self) -> int:
        """How much of that waits for its ready queue to be emptied."""
        return self.waiting - self.ready

    def ready_in(self, partition: int) -> int:
        """How much of a partition is due, not claimed, and not held back."""
        return sum(
            self._ready(partition, queue, n)
            for queue, n in self._counts.get(partition, _NOTHING).items()
        )

    def _ready(self, partition: int, queue: str, waiting: int) -> int:
        if not queue or self._room(queue, False) > 0:
            return waiting
        fresh = sum(level.fresh_in[partition, queue] for level in self._levels.values())
        return min(fresh, self._room(queue, True)) if fresh else 0

    def add(self, entry: Entry) -> bool:
        """Takes in what somebody read or heard of; False where there was no room for it."""
        if entry.id in self._queued:
            return True
        if entry.id in self._in_hand:
            kept = self._in_hand[entry.id]
            if kept is None or entry.due_us < kept.due_us:
                self._in_hand[entry.id] = entry
            return True
        return self.wheel.add(entry)

    def release(self, now_us: int) -> None:
        """Moves what is due from the wheel into the flows."""
        for entry in self.wheel.pop_due(now_us):
            self._enqueue(entry)

    def draw(self, now_us: int, limit: int, partitions: Collection[int]) -> list[Entry]:
        """Up to ``limit`` entries due at ``now_us``, from the flows of ``partitions``; in hand."""
        self.release(now_us)
        rooms = _Rooms(self._room)
        drawn: list[Entry] = []
        levels = [self._levels[priority] for priority in sorted(self._levels, reverse=True)]
        for level in levels:
            half = limit if level is levels[-1] else (limit - len(drawn) + 1) // 2
            drawn += level.draw(min(half, limit - len(drawn)), partitions, rooms)
        for level in levels if len(levels) > 1 else ():
            drawn += level.draw(limit - len(drawn), partitions, rooms)
        self._levels = {p: level for p, level in self._levels.items() if level.turn}
        for entry in drawn:
            self._in_hand[entry.id] = None
        self._queued.difference_update(entry.id for entry in drawn)
        for (partition, queue), count in Counter((e.partition, e.queue) for e in drawn).items():
            self._count(partition, queue, -count)
        return drawn

    def settle(self, entries: Iterable[Entry]) -> None:
        """They are in hand no more; what was heard of them meanwhile is taken in now."""
        for entry in entries:
            heard = self._in_hand.pop(entry.id, None)
            if heard is not None:
                self.wheel.add(heard)

    def next_due(self, partitions: Collection[int]) -> int | None:
        """When there is something to draw from ``partitions``: 0 for now."""
        if any(self.ready_in(number) for number in self._counts if number in partitions):
            return 0
        return self.wheel.next_due()

    def run_short(self) -> list[tuple[str, int]]:
        """Queues with room, and the partitions of which little is left here for them and more is in
        the index."""
        few = max(1, self._share // (2 * max(1, len(self._counts))))
        return [
            (queue, partition)
            for queue, partitions in self.left_behind.rows.items()
            if not queue or self._room(queue, False) > 0
            for partition in partitions
            if self._counts.get(partition, _NOTHING).get(queue, 0) < few
        ]

    def forget(self, partition: int) -> None:
        """Everything of a partition that is led no more."""
        self.wheel.remove_partition(partition)
        for level in self._levels.values():
            self._queued.difference_update(entry.id for entry in level.forget(partition))
        for queue, count in list(self._counts.get(partition, _NOTHING).items()):
            self._count(partition, queue, -count)
        self._counts.pop(partition, None)
        self.left_behind.forget(partition)

    def _enqueue(self, entry: Entry) -> None:
        if not self._has_a_place(entry):
            self.left_behind.note(entry)
            return
        level = self._levels.get(entry.priority)
        if level is None:
            level = self._levels[entry.priority] = _Level()
        level.put(entry)
        self._queued.add(entry.id)
        self._count(entry.partition, entry.queue, 1)

    def _has_a_place(self, entry: Entry) -> bool:
        """Whether it is taken in, however much is here already."""
        queued = len(self._queued)
        if queued < self._capacity and not self.left_behind.rows:
            return True
        first = self.left_behind.first(entry.partition, (entry.queue,))
        if queued < self._capacity and (first is None or entry <= first):
            return True
        if queued >= 2 * self._capacity:
            return False
        level = self._levels.get(entry.priority)
        flow = None if level is None else level.flows.get(entry[2:5])
        if not flow:
            return True
        if len(flow) < self._capacity // SMALL and queued < self._capacity * FOR_SMALL:
            return True
        return first is None and self._of_queue.get(entry.queue, 0) < self._share

    @property
    def _share(self) -> int:
        """How much a queue may have here, where all together have more than there is room for."""
        return self._capacity // max(1, len(self._of_queue))

    def _count(self, partition: int, queue: str, change: int) -> None:
        counts = self._counts.get(partition)
        if counts is None:
            counts = self._counts[partition] = {}
        for of in (self._of_queue, counts):
            if count := of.get(queue, 0) + change:
                of[queue] = count
            else:
                del of[queue]
