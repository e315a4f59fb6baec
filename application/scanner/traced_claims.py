"""Claims as spans: one for a batch, linked to the commands that ordered its runs.

Only where somebody traces: what ordered a run is then looked up in the log, once for a batch.
"""

from dataclasses import replace
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences
from horolog.application.scanner.claiming import Appends
from horolog.application.tracing import MOST_LINKS, FindsOrders, RunTrace, RunTraces, Spans
from horolog.domain.errors import StoreUnavailable
from horolog.domain.occurrence_events import Claimed


class TracedClaims:
    """A log as the scanner claims in it; leaves in ``traces`` what the messages are to carry."""

    def __init__(
        self, appends: Appends, spans: Spans, orders: FindsOrders, traces: RunTraces
    ) -> None:
        self._appends = appends
        self._spans = spans
        self._orders = orders
        self._traces = traces

    async def append(self, decisions: list[Decision], fences: Fences | None = None) -> Appended:
        """As :class:`horolog.application.log.AppendsToLog` promises."""
        claims = {
            new.stream: (new.event.job_id, new.event.kind)
            for decision in decisions
            for new in decision.events
            if isinstance(new.event, Claimed)
        }
        if not claims:
            return await self._appends.append(decisions, fences)
        ordered = await self._orders.orders(claims)
        links = list(dict.fromkeys(one.traceparent for one in ordered.values()))[:MOST_LINKS]
        span = self._spans.begin(
            "horolog.claim", links=links, attributes={"horolog.batch": len(claims)}
        )
        traceparent = span.traceparent
        if traceparent is not None:
            _mark(decisions, traceparent)
        try:
            appended = await self._appends.append(decisions, fences)
        except StoreUnavailable:
            span.end("store_away")
            raise
        accepted = 0
        for decision, verdict in zip(decisions, appended.verdicts, strict=True):
            if verdict == "accepted":
                for run in _claimed(decision):
                    accepted += 1
                    if traceparent is not None:
                        self._traces.note(run, RunTrace(traceparent, ordered.get(run)))
        span.end("", {"horolog.accepted": accepted, "horolog.position": appended.position})
        return appended


def _claimed(decision: Decision) -> list[UUID]:
    return [new.stream for new in decision.events if isinstance(new.event, Claimed)]


def _mark(decisions: list[Decision], traceparent: str) -> None:
    """Writes the claim's span into its events."""
    for decision in decisions:
        decision.events[:] = [
            replace(new, event=new.event.model_copy(update={"traceparent": traceparent}))
            if isinstance(new.event, Claimed)
            else new
            for new in decision.events
        ]
