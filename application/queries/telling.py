"""What an event of an occurrence means, in plain words."""

import json
from datetime import datetime
from typing import Final

from horolog.domain.event import Event
from horolog.domain.job_events import SkipCause
from horolog.domain.occurrence_events import (
    Attempted,
    CancelRequested,
    Claimed,
    DeadLettered,
    DeathCause,
    Discarded,
    Failed,
    Lost,
    Recalled,
    Replayed,
    Skipped,
    Snoozed,
    Stopped,
    Succeeded,
)

SKIPPED_BECAUSE: Final[dict[SkipCause, str]] = {
    "misfire": "it was missed, and the job's catch-up policy does not run what was missed",
    "superseded": "a later one runs in its place",
    "overlap": "an earlier run of the job was not finished",
    "paused": "the job was paused",
    "cancelled": "it or its job was cancelled",
    "calendar": "its date is excluded or a holiday",
    "gap": "its local time did not exist",
}
DEAD_BECAUSE: Final[dict[DeathCause, str]] = {
    "exhausted": "no attempt is left",
    "hopeless": "another try would fail the same way",
    "unknown_handler": "no worker has its handler",
    "unknown_outcome": "whether its effect happened is not known, and it must not happen twice",
    "operator": "a person said so",
}
_SHORT = 200


def moment(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds")


def told(event: Event, recorded_at: datetime) -> str:
    """One sentence; ``recorded_at`` is the event's, for what it says of later instants."""
    match event:
        case Claimed():
            return (
                f"leader {event.actor or '?'} claimed attempt {event.attempt}"
                f" of partition {event.partition} under fencing token {event.token}"
            )
        case Attempted():
            return (
                f"worker {event.actor or '?'} took it from the ready queue"
                f" and began attempt {event.attempt}"
            )
        case Succeeded():
            result = "" if event.result is None else f" and returned {_short(event.result)}"
            return f"attempt {event.attempt} succeeded after {event.seconds:.3f} s{result}"
        case Failed():
            return (
                f"attempt {event.attempt} failed after {event.seconds:.3f} s"
                f" ({event.kind}): {_short(event.error)}{_again(event.retry_at, recorded_at)}"
            )
        case Lost():
            return (
                f"attempt {event.attempt} was given up: its worker was not heard of again"
                f"{_again(event.retry_at, recorded_at)}"
            )
        case Snoozed():
            return f"attempt {event.attempt} was given back until {moment(event.until)}"
        case _:
            return _told_rarely(event)


def _told_rarely(event: Event) -> str:
    by = event.actor or "somebody"
    why = f", because {event.reason!r}" if event.reason else ""
    match event:
        case Recalled():
            return f"the job was changed before the run began: it is claimed anew{why}"
        case CancelRequested():
            cause = (
                "a later run is to take its place"
                if event.cause == "overlap"
                else SKIPPED_BECAUSE[event.cause]
            )
            return f"{by} asked the running attempt to stop: {cause}{why}"
        case Stopped():
            return (
                f"attempt {event.attempt} stopped after {event.seconds:.3f} s, as it was asked to"
            )
        case Skipped():
            return f"it was skipped: {SKIPPED_BECAUSE[event.cause]}{why}"
        case DeadLettered():
            return (
                f"it was dead-lettered: {DEAD_BECAUSE[event.cause]};"
                f" it is {event.owner or 'nobody'}'s to look at"
            )
        case Replayed():
            return f"{by} ordered another try at {moment(event.at)}{why}"
        case Discarded():
            return f"{by} closed the dead letter: no further try is needed{why}"
        case _:
            return event.topic


def _again(retry_at: datetime | None, recorded_at: datetime) -> str:
    if retry_at is None:
        return ""
    wait = (retry_at - recorded_at).total_seconds()
    return f"; the next try is due at {moment(retry_at)}, {wait:.3f} s later"


def _short(value: object) -> str:
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    words = " ".join(words.split())
    return words if len(words) <= _SHORT else f"{words[: _SHORT - 1]}…"
