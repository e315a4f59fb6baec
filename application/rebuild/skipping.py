"""Passing over an event that no projection can apply: an order, and itself in the log."""

from typing import Protocol

from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.log import AppendsToLog, ReadsLog
from horolog.application.rebuild.ports import Rebuilds
from horolog.domain.errors import InvalidSetting
from horolog.domain.ids import log_stream
from horolog.domain.log_events import EventSkipped, LogEvent
from horolog.domain.origin import Origin


class Log(AppendsToLog, ReadsLog, Protocol):
    """Both sides of the log, as one type."""


def skip_event(
    rebuilds: Rebuilds, log: Log, namespace: str, position: int, *, error: str, origin: Origin
) -> EventSkipped:
    """Records that rebuilds pass over the event at ``position``; a second time records nothing.

    What its stream says afterwards counts as far as it can be without the event. Raises
    ``InvalidSetting`` where there is no event at that position.
    """
    for known in rebuilds.skipped():
        if known.position == position:
            return known
    place = rebuilds.event_at(position)
    if place is None:
        raise InvalidSetting(f"--skip {position}: the log has no event at that position")
    stream, version, topic = place
    event = EventSkipped(
        position=position,
        stream=stream,
        version=version,
        skipped_topic=topic,
        error=error,
        **origin.fields(),
    )
    append_to_log_stream(log, namespace, [event])
    return event


def append_to_log_stream(log: Log, namespace: str, events: list[LogEvent]) -> None:
    """Appends to the stream of what is said about the log itself, behind what others say."""
    decision = log_decision(log, namespace, events)
    while log.append([decision]).verdicts != ["accepted"]:
        decision = log_decision(log, namespace, events)


def log_decision(log: Log, namespace: str, events: list[LogEvent]) -> Decision:
    """The decision that appends ``events`` at the present end of that stream."""
    stream = log_stream(namespace)
    version = 0
    while page := log.stream(stream, after=version, limit=1_000):
        version = page[-1].version
    decision = Decision(Guard("nothing", stream, 0), -1)
    decision.events = [
        NewEvent(stream, number, event) for number, event in enumerate(events, version + 1)
    ]
    return decision
