"""What is said about alerts: the rules that people set, when one is raised, repeated, and over, and
whether those who are to know were told.

An alert is a condition of one owner's work, in a stream of its own (:func:`horolog.domain.ids.
alert_stream`). A rule has a stream too. No event holds a secret: what a rule sends to is described
without the paths, arguments and passwords that may be keys to it.
"""

from datetime import datetime
from typing import Literal

from pydantic import Field

from horolog.domain.event import Event

AlertCondition = Literal["dead_letter_depth", "dead_letter_age", "deadline"]
AlertWay = Literal["command", "webhook", "nats"]


class AlertEvent(Event):
    """Any of the events below."""


class AlertRuleSet(AlertEvent, topic="alert_rule.set.1"):
    """From now on ``owner``'s work is watched like this; without an owner, that of everybody who
    has no rule of their own. Ages are seconds. ``ways`` describes whom it tells."""

    owner: str | None = None
    dead_letters: int | None = None
    dead_letter_age: float | None = None
    deadlines: bool = False
    repeat: float
    ways: dict[AlertWay, str] = Field(default_factory=dict)


class AlertRuleRemoved(AlertEvent, topic="alert_rule.removed.1"):
    """The rule of ``owner`` (without one: of everybody) is no more."""

    owner: str | None = None


class AlertRaised(AlertEvent, topic="alert.raised.1"):
    """The condition holds: ``value`` is at ``threshold`` or beyond. ``ways`` are to be told."""

    condition: AlertCondition
    owner: str | None = None
    value: float
    threshold: float
    ways: list[AlertWay] = Field(default_factory=list)


class AlertRepeated(AlertEvent, topic="alert.repeated.1"):
    """It still holds, since ``since``, and is told again."""

    condition: AlertCondition
    owner: str | None = None
    value: float
    threshold: float
    since: datetime
    ways: list[AlertWay] = Field(default_factory=list)


class AlertResolved(AlertEvent, topic="alert.resolved.1"):
    """It is over, after ``seconds``."""

    condition: AlertCondition
    owner: str | None = None
    since: datetime
    seconds: float
    ways: list[AlertWay] = Field(default_factory=list)


class AlertDelivered(AlertEvent, topic="alert.delivered.1"):
    """``way`` took the notice, which is the event of this stream at version ``notice``."""

    notice: int
    way: AlertWay
    tries: int = 1


class AlertDeliveryFailed(AlertEvent, topic="alert.delivery_failed.1"):
    """``way`` did not take the notice; tried again at ``retry_at``, without one never."""

    notice: int
    way: AlertWay
    tries: int
    error: str
    retry_at: datetime | None = None
