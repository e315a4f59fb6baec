"""How far a rebuild has come, and how long it will take."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class Progress:
    """``position`` of the log's ``end`` is folded; ``events`` and ``seconds`` are of this process.

    ``left_s`` is guessed from the speed so far; ``None`` before there is one.
    """

    position: int
    end: int
    events: int
    seconds: float
    left_s: float | None

    @property
    def events_per_s(self) -> float:
        return self.events / self.seconds if self.seconds > 0 else 0.0


Watch = Callable[[Progress], None]


class Pace:
    """Measures one process's share of a rebuild."""

    def __init__(self, position: int, watch: Watch | None) -> None:
        self._watch = watch
        self._first = position
        self._started = monotonic()
        self.events = 0

    def moved(self, position: int, end: int, events: int) -> None:
        """So many more events are folded, up to ``position``."""
        self.events += events
        if self._watch is not None:
            self._watch(self.progress(position, end))

    def progress(self, position: int, end: int) -> Progress:
        seconds = monotonic() - self._started
        speed = (position - self._first) / seconds if seconds > 0 else 0.0
        left_s = max(0, end - position) / speed if speed > 0 else None
        return Progress(position, max(end, position), self.events, seconds, left_s)
