"""Reading rows as they are now: one that cannot be read stops only itself.

A definition that a newer release wrote, or a hand that slipped, makes a row unreadable. A batch
with one in it is read again in halves until that row is alone; then it is left for a while, and
counted.
"""

import logging
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from horolog.application.scanner.clock import DatabaseTime
from horolog.application.scanner.signals import Signals
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.errors import UnreadableEvent

log = logging.getLogger("horolog.scanner")

TROUBLE_PAUSE_US = 60_000_000
"""How soon a row is read again that cannot be read or decided on."""


class ReadsRows(Protocol):
    async def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        """As :class:`horolog.application.states.ReadsDue`, without blocking the loop. Errors:
        ``StoreUnavailable``; ``UnreadableEvent`` or ``ValueError`` where a row cannot be read."""
        ...


class Reading:
    """Reads rows, and remembers those that are set aside."""

    def __init__(self, rows: ReadsRows, time: DatabaseTime, signals: Signals) -> None:
        self._rows = rows
        self._time = time
        self._signals = signals
        self._aside: dict[UUID, int] = {}

    async def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        """The rows that can be read, of those that are not set aside."""
        if self._aside:
            now_us = self._time.now_us()
            self._aside = {id_: until for id_, until in self._aside.items() if until > now_us}
            ids = [identity for identity in ids if identity not in self._aside]
        return await self._read(ids)

    def set_aside(self, identity: UUID) -> None:
        """It cannot be read or decided on: it is left for a while. Called within the handling of
        the error."""
        log.error("the row of %s in the index cannot be decided on", identity, exc_info=True)
        self._signals.emit("put_aside")
        self._aside[identity] = self._time.now_us() + TROUBLE_PAUSE_US

    async def _read(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        try:
            return await self._rows.due(ids)
        except (UnreadableEvent, ValueError):
            if len(ids) == 1:
                self.set_aside(ids[0])
                return []
        middle = len(ids) // 2
        return [*await self._read(ids[:middle]), *await self._read(ids[middle:])]
