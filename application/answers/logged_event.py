"""An event, as a client sees it: what happened, when, by whom, why, and because of what."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.application.log import Recorded
from horolog.domain.event import Event

_ORIGIN = {"actor", "reason", "correlation", "causation", "traceparent"}


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event of the log.

    ``position`` is its place in the one order of all events, ``version`` its place in its stream (a
    job, an occurrence or a partition). ``recorded_at`` is the database's clock. ``correlation``
    joins the events of one command, or else is the stream; ``causation`` names the event that led
    to this one as ``stream:version``. ``event`` is the typed event, ``data`` what it states as
    JSON.
    """

    position: int
    recorded_at: datetime
    stream: UUID
    version: int
    topic: str
    actor: str
    reason: str | None
    correlation: UUID
    causation: str | None
    event: Event
    archive: str | None = None
    """The file of the archive that it was read from; ``None`` for what is in the log."""

    @classmethod
    def of(cls, recorded: Recorded) -> "LoggedEvent":
        """The answer that a recorded event gives."""
        event, version = recorded.event, recorded.version
        before = f"{recorded.stream}:{version - 1}" if version > 1 else None
        return cls(
            position=recorded.position,
            recorded_at=recorded.recorded_at,
            stream=recorded.stream,
            version=version,
            topic=event.topic,
            actor=event.actor,
            reason=event.reason,
            correlation=event.correlation or recorded.stream,
            causation=event.causation or before,
            event=event,
        )

    @property
    def data(self) -> dict[str, Any]:
        """What the event says as JSON values, without who, why and what caused it."""
        return self.event.model_dump(mode="json", exclude=_ORIGIN)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "position": self.position,
            "recorded_at": plain(self.recorded_at),
            "stream": str(self.stream),
            "version": self.version,
            "topic": self.topic,
            "actor": self.actor,
            "reason": self.reason,
            "correlation": str(self.correlation),
            "causation": self.causation,
            "data": self.data,
            **({} if self.archive is None else {"archive": self.archive}),
        }
