"""Appends with a watch beside them: how long, how many decisions, and how late the claims were."""

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences, Recorded
from horolog.application.measuring import Measures
from horolog.domain.occurrence_events import Claimed


class _Log(Protocol):
    async def append(
        self, decisions: Sequence[Decision], fences: Fences | None = None
    ) -> Appended: ...

    async def stream(
        self, stream: UUID, *, after: int = 0, limit: int = 1000
    ) -> list[Recorded]: ...


class MeasuredLog:
    """A log as it was, for the loop that ``writer`` names."""

    def __init__(self, log: _Log, measures: Measures, writer: str) -> None:
        self._log = log
        self._measures = measures
        self._writer = writer
        self.stream = log.stream

    async def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        started = perf_counter()
        appended = await self._log.append(decisions, fences)
        self._measures.observe("append_seconds", perf_counter() - started, writer=self._writer)
        self._measures.observe("append_decisions", len(decisions), writer=self._writer)
        for decision, verdict in zip(decisions, appended.verdicts, strict=True):
            if verdict != "accepted":
                continue
            for new in decision.events:
                if type(new.event) is Claimed and new.event.attempt == 1:
                    late = (appended.recorded_at - new.event.fire_time).total_seconds()
                    self._measures.observe("claim_lateness_seconds", max(0.0, late))
        return appended
