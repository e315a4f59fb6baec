"""Left behind: rows that are due and have no place in memory, and where the first of them is.

Of a queue whose workers are slow, or away, only so much is kept in memory; the rest is passed over
and stays in the index. Here is known at which row that began, by queue and partition, so that it is
fetched from there when the queue has been worked off so far: not from the beginning, where the rows
of a queue that nobody works at may lie by the million.
"""

from collections.abc import Iterable

from horolog.application.scanner.wheel import Entry


class LeftBehind:
    """A memory and no record: every pass of the sweep finds it anew."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, Entry]] = {}
        """The first row left behind, by queue and partition."""

    def note(self, entry: Entry) -> None:
        """There was no place for the entry."""
        rows = self.rows.setdefault(entry.queue, {})
        known = rows.get(entry.partition)
        if known is None or entry < known:
            rows[entry.partition] = entry

    def fetch(self, queue: str, partition: int) -> Entry:
        """The first row; whoever asks reads on from there."""
        row = self.rows[queue].pop(partition)
        if not self.rows[queue]:
            del self.rows[queue]
        return row

    def first(self, partition: int, queues: Iterable[str]) -> Entry | None:
        """The first row of any of the queues."""
        rows = [self.rows[queue].get(partition) for queue in queues if queue in self.rows]
        return min((row for row in rows if row is not None), default=None)

    def forget(self, partition: int) -> None:
        """The partition is led no more."""
        for queue in [queue for queue, rows in self.rows.items() if partition in rows]:
            self.fetch(queue, partition)
