"""Tests of a user's projection: feed it events, read the view."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.log import Recorded
from horolog.application.projecting.projection import Projection
from horolog.application.queries.asking import checked_topics
from horolog.domain.event import Event

_AT = datetime(2027, 1, 1, tzinfo=UTC)


def feed(projection: Projection, events: Iterable[LoggedEvent], view: Any) -> int:
    """Sets the projection up and applies those of ``events`` that it wants; how many they were.

    ``view`` is whatever the projection writes to: a connection in a transaction that the test takes
    back, say. ``events`` come from ``SimulatedScheduler.log()``, or from :func:`happened`.
    """
    wanted = set(checked_topics(projection.topics))
    projection.set_up(view)
    applied = 0
    for event in events:
        if not wanted or event.topic in wanted:
            projection.apply(event, view)
            applied += 1
    return applied


def happened(
    event: Event,
    *,
    stream: UUID | None = None,
    version: int = 1,
    position: int = 1,
    at: datetime = _AT,
) -> LoggedEvent:
    """An event as the log would tell it, for :func:`feed`."""
    return LoggedEvent.of(Recorded(position, at, stream or UUID(int=position), version, event))
