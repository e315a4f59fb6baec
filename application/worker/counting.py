"""What was refused or odd is counted, for `doctor`: in memory, and in the database now and then."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Protocol

from horolog.application.measuring import UNMEASURED, Measures


class RecordsCounts(Protocol):
    """Adds to the counters of the namespace. Errors: ``StoreUnavailable``."""

    def add(self, counts: Mapping[str, int]) -> None: ...


class Counting:
    """Counts that are still to be recorded; shared by threads."""

    def __init__(self, measures: Measures = UNMEASURED) -> None:
        self._measures = measures
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number
        self._measures.count("worker_events_total", number, event=name)

    def record(self, into: RecordsCounts) -> None:
        """Records what was counted since the last time; where that fails, it is kept."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            into.add(counts)
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise
