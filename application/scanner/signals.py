"""What a scanner does, as it does it: counts for people, and moments that a test can await.

Names are words of the design: ``claimed``, ``published``, ``stale``, ``conflict`` … A witness is
called at each moment, within the step that it names; a test's witness may end the process there.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

Witness = Callable[[str, int], None]


class Signals:
    """Counts by name; belongs to one event loop."""

    def __init__(self, *witnesses: Witness) -> None:
        self.counts: Counter[str] = Counter()
        self._witnesses = list(witnesses)
        self._changed = asyncio.Event()

    def join(self, witness: Witness) -> None:
        """One more witness, of what happens from now on."""
        self._witnesses.append(witness)

    def emit(self, name: str, count: int = 1) -> None:
        """``name`` happened ``count`` times; zero times is nothing."""
        if count:
            self.counts[name] += count
            self._changed.set()
            for witness in self._witnesses:
                witness(name, count)

    async def reached(self, name: str, count: int = 1) -> None:
        """Returns when ``name`` has happened ``count`` times since the start."""
        while self.counts[name] < count:
            self._changed.clear()
            await self._changed.wait()
