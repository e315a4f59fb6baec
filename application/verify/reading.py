"""Reading a stored state without the typed events; old topics are read as the newest shape."""

import json
from functools import lru_cache
from typing import Any, Final, cast
from uuid import UUID

from pydantic_core import from_json

from horolog.application.verify.ports import ScannedEvent
from horolog.domain import (
    alert_events,
    job_events,
    log_events,
    occurrence_events,
    partition,
    subject_events,
)
from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import read_event, topics

# A topic is known once the module that declares its event is imported.
_DECLARING: Final = (
    alert_events,
    job_events,
    log_events,
    occurrence_events,
    partition,
    subject_events,
)
_PRESENT: Final = frozenset(topics())


@lru_cache(maxsize=1_000)
def parts_of(topic: str) -> tuple[str, str]:
    """What an event is about, and what it says of it: ``("occurrence", "claimed")``."""
    about, _, kind = topic.partition(".")
    return about, kind.partition(".")[0]


@lru_cache(maxsize=131_072)
def job_named(text: str) -> bytes:
    """The id that an event names a job by; the same ones come again and again."""
    return UUID(text).bytes


def read_state(event: ScannedEvent) -> dict[str, Any] | None:
    """What the event states; ``None`` where it cannot be read."""
    try:
        if event.topic in _PRESENT:
            state = from_json(event.state)
        else:
            typed = read_event(event.topic, event.state)
            state = json.loads(typed.to_json())
    except (ValueError, UnreadableEvent):
        return None
    return cast("dict[str, Any]", state) if isinstance(state, dict) else None
