"""What every event is: a frozen fact under a stable, versioned topic.

A topic (``occurrence.claimed.1``) is a name for ever, never an import path. A change of meaning
gets a new number, and :func:`upcast_from` says how the old shape reads as the new one. State is
JSON, so that psql and BI tools read the log without this code.

Beside what happened an event says who did it, why, and what caused it. The instant is not in here:
the database's clock stamps it when the log accepts the event.
"""

import json
from collections.abc import Callable
from typing import Any, ClassVar, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from horolog.domain.errors import UnreadableEvent

_classes: dict[str, "type[Event]"] = {}
_upcasters: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {}


class Event(BaseModel):
    """A fact. Subclasses declare their topic: ``class Paused(Event, topic="job.paused.1")``.

    ``actor`` is who did it, ``reason`` why (in the actor's words). ``correlation`` joins the events
    of one command; where it is absent, the stream is the story. ``causation`` names the event that
    led to this one as ``stream:version``; where absent, it is the one before it in its stream.
    ``traceparent`` is the span that it was made in (W3C trace context), where somebody traced.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    topic: ClassVar[str] = ""

    actor: str = ""
    reason: str | None = None
    correlation: UUID | None = None
    causation: str | None = None
    traceparent: str | None = None

    def __init_subclass__(cls, *, topic: str = "") -> None:
        super().__init_subclass__()
        if topic:
            assert topic not in _classes, f"two events share the topic {topic}"
            cls.topic = topic
            _classes[topic] = cls

    def to_json(self) -> bytes:
        """The state as compact JSON; what has its default is left out."""
        # As model_dump_json does it, which would make text of the bytes on the way.
        return self.__pydantic_serializer__.to_json(self, exclude_defaults=True)

    @classmethod
    def from_json(cls, state: bytes) -> Self:
        return cls.model_validate_json(state)


def topics() -> list[str]:
    """Every topic that this release writes, sorted."""
    return sorted(_classes)


def upcast_from(
    old: str, new: str
) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], Callable[..., dict[str, Any]]]:
    """Declares how the state under topic ``old`` reads as the state of topic ``new``.

    Steps chain: version 1 reads as 2, 2 as 3. Stored events are never rewritten.
    """

    def declare(step: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        assert old not in _classes, f"{old} is still written"
        _upcasters[old] = (new, step)
        return step

    return declare


def read_event(topic: str, state: bytes, *, where: str = "") -> Event:
    """The event behind a stored topic and state, upcast to its newest shape.

    Raises ``UnreadableEvent``, with ``where`` in its message, for a topic that this release does
    not know and for a state that is not what the topic promises.
    """
    try:
        if topic in _upcasters:
            values: dict[str, Any] = json.loads(state)
            while topic in _upcasters:
                topic, step = _upcasters[topic]
                values = step(values)
            state = json.dumps(values).encode()
        return _classes[topic].from_json(state)
    except KeyError:
        known = "this release does not know its topic (was it written by a newer one?)"
        raise UnreadableEvent(f"event {where or '?'} has topic {topic!r}: {known}") from None
    except (ValidationError, ValueError, RecursionError) as error:
        raise UnreadableEvent(
            f"event {where or '?'} ({topic}) has an unreadable state: {unreadable(error)}"
        ) from error


def unreadable(error: Exception) -> str:
    """What is wrong with a state, without what it states: that may be somebody's payload."""
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc']) or 'it'}: {one['msg']}" for one in found[:5]
    )
