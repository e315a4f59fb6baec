"""What an instance knows to be due, now and soon: the wheel, and behind it a queue per partition.

What the wheel lets go waits in its partition's queue, and batches are drawn from these in turn: a
flood in one partition does not delay the others. An entry that is being claimed is known too: the
sweep, which reads rows that are not claimed yet, does not bring it in a second time, and news that
arrives about it meanwhile is kept until the claim is settled.
"""

from collections import deque
from collections.abc import Collection, Iterable
from uuid import UUID

from horolog.application.scanner.wheel import Entry, Wheel


class Agenda:
    """Entries by id; each is in the wheel, in a queue, or in hand."""

    def __init__(self, wheel: Wheel) -> None:
        self.wheel = wheel
        self._queues: dict[int, deque[Entry]] = {}
        self._queued: set[UUID] = set()
        self._in_hand: dict[UUID, Entry | None] = {}
        self._turn: deque[int] = deque()

    def __len__(self) -> int:
        return len(self.wheel) + len(self._queued) + len(self._in_hand)

    @property
    def waiting(self) -> int:
        """How much is due and not claimed."""
        return len(self._queued)

    def waiting_in(self, partition: int) -> int:
        """How much is due and not claimed in a partition."""
        queue = self._queues.get(partition)
        return 0 if queue is None else len(queue)

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
        """Moves what is due from the wheel into the queues."""
        for entry in self.wheel.pop_due(now_us):
            self._enqueue(entry)

    def draw(self, now_us: int, limit: int, partitions: Collection[int]) -> list[Entry]:
        """Up to ``limit`` entries due at ``now_us``, from ``partitions`` in turn; now in hand."""
        self.release(now_us)
        drawn: list[Entry] = []
        idle = 0
        while len(drawn) < limit and idle < len(self._turn):
            partition = self._turn[0]
            self._turn.rotate(-1)
            queue = self._queues[partition]
            if not queue or partition not in partitions:
                idle += 1
                continue
            idle = 0
            # A slice at a time: nearly as fair as one by one, and much cheaper.
            for _ in range(min(len(queue), max(1, limit // 64), limit - len(drawn))):
                entry = queue.popleft()
                self._queued.discard(entry.id)
                self._in_hand[entry.id] = None
                drawn.append(entry)
        return drawn

    def settle(self, entries: Iterable[Entry]) -> None:
        """They are in hand no more; what was heard of them meanwhile is taken in now."""
        for entry in entries:
            heard = self._in_hand.pop(entry.id, None)
            if heard is not None:
                self.wheel.add(heard)

    def next_due(self, partitions: Collection[int]) -> int | None:
        """When there is something to draw from ``partitions``: 0 for now."""
        if any(queue and number in partitions for number, queue in self._queues.items()):
            return 0
        return self.wheel.next_due()

    def forget(self, partition: int) -> None:
        """Everything of a partition that is led no more."""
        self.wheel.remove_partition(partition)
        queue = self._queues.pop(partition, None)
        if queue is not None:
            self._queued.difference_update(entry.id for entry in queue)
            self._turn.remove(partition)

    def _enqueue(self, entry: Entry) -> None:
        queue = self._queues.get(entry.partition)
        if queue is None:
            queue = self._queues[entry.partition] = deque()
            self._turn.append(entry.partition)
        queue.append(entry)
        self._queued.add(entry.id)
