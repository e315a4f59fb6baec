"""Receiving: what clients have committed to the inbox is carried out by its partition's leader.

News of a commit comes at once; what is not heard is found by a look now and then, and by whoever
takes over a partition. Two leaders that believe in the same partition for a moment do no harm: a
row is taken by the transaction that appends what it says.
"""

from collections.abc import Sequence
from typing import Protocol

from horolog.application.inbox.draining import PAGE
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Territory


class DrainsInbox(Protocol):
    async def drain(self, partitions: Sequence[int]) -> int:
        """Goes once through a page of what waits for these partitions; how many rows there were.

        Errors: ``StoreUnavailable``; what was carried out by then stays so.
        """
        ...


class Receiving:
    """One step: the inbox of the partitions that this instance leads."""

    def __init__(
        self,
        territory: Territory,
        *,
        inbox: DrainsInbox,
        settings: ScannerSettings,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._inbox = inbox
        self._settings = settings
        self._signals = signals

    def told(self, partition: int) -> bool:
        """Whether the news is for this instance."""
        return partition in self._territory.terms

    async def step(self) -> float:
        """Seconds until the next look, unless there is news."""
        led = sorted(self._territory.terms)
        found = await self._inbox.drain(led) if led else 0
        self._signals.emit("received", found)
        return 0.0 if found == PAGE else self._settings.inbox_interval_s
