"""A row of the log as the application reads it."""

from horolog.application.log import Recorded
from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import read_event
from horolog.infrastructure.postgres.database import Row

COLUMNS = "position, recorded_at, stream, version, topic, state"


def recorded(row: Row) -> Recorded:
    """The event behind a row of ``COLUMNS``; raises ``UnreadableEvent``, which names it."""
    position, recorded_at, stream, version, topic, state = row
    try:
        event = read_event(topic, state)
    except UnreadableEvent:  # once more, with its place: naming that of each event takes its time
        where = f"at position {position} ({stream}:{version})"
        event = read_event(topic, bytes(state), where=where)
    return Recorded(position, recorded_at, stream, version, event)
