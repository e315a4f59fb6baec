"""The publishing position: up to where in the log a partition's claims are in the queue.

A successor reads it and publishes what lies behind it. So it may lag (then something is published
twice, under the same id) but never lead: it passes a batch only when all of that batch, and of all
before it, is confirmed.
"""

from collections import deque


class Batch:
    """The claims of one append in one partition, or what a takeover found there."""

    __slots__ = ("open", "partition", "position")

    def __init__(self, partition: int, position: int, count: int) -> None:
        self.partition = partition
        self.position = position
        self.open = count


class Progress:
    """Batches by partition, in the order of the log; ``marks`` is what is to be written down."""

    def __init__(self) -> None:
        self._batches: dict[int, deque[Batch]] = {}
        self.marks: dict[int, int] = {}

    def begin(self, partition: int, position: int, count: int) -> Batch:
        """A batch of ``count`` claims (with nothing in it, it is complete as soon as it may be)."""
        batch = Batch(partition, position, count)
        self._batches.setdefault(partition, deque()).append(batch)
        self._pass(partition)
        return batch

    def confirm(self, batch: Batch, count: int = 1) -> None:
        """So many claims of the batch are in the queue now."""
        batch.open -= count
        self._pass(batch.partition)

    def forget(self, partition: int) -> None:
        """A partition that is led no more: its position is the successor's."""
        self._batches.pop(partition, None)
        self.marks.pop(partition, None)

    def take_marks(self) -> dict[int, int]:
        """The positions that changed since the last call."""
        marks, self.marks = self.marks, {}
        return marks

    def _pass(self, partition: int) -> None:
        batches = self._batches.get(partition)
        while batches and batches[0].open <= 0:
            self.marks[partition] = batches.popleft().position
