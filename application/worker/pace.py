"""How fast this worker gets through its runs: what may be pulled ahead of the free slots.

With slow handlers nothing is pulled ahead, so that other workers get it; with fast ones enough is
at hand to keep the slots busy during the round trip of a pull.
"""

from math import exp

_MEMORY_S = 0.5


class Pace:
    """Runs ended per second, forgotten exponentially within half a second."""

    def __init__(self, now_s: float) -> None:
        self._at = now_s
        self._rate = 0.0

    def note(self, runs: int, now_s: float) -> None:
        """So many runs ended since the last note."""
        self._rate = self.per_second(now_s) + runs / _MEMORY_S
        self._at = now_s

    def per_second(self, now_s: float) -> float:
        return self._rate * exp((self._at - now_s) / _MEMORY_S)
