"""Who does something, why, and as part of what: the same for all events of one command."""

from typing import TypedDict
from uuid import UUID

from horolog.domain.record import record


class OriginFields(TypedDict):
    actor: str
    reason: str | None
    correlation: UUID | None
    causation: str | None
    traceparent: str | None


@record
class Origin:
    """Spread into each event of one command: ``Paused(**origin.fields())``."""

    actor: str
    reason: str | None = None
    correlation: UUID | None = None
    causation: str | None = None
    traceparent: str | None = None

    def fields(self) -> OriginFields:
        return {
            "actor": self.actor,
            "reason": self.reason,
            "correlation": self.correlation,
            "causation": self.causation,
            "traceparent": self.traceparent,
        }
