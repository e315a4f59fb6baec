"""What alerts ask of the outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from horolog.application.alerting.rules import AlertRule
from horolog.application.decision import Decision
from horolog.application.log import Recorded, Verdict
from horolog.domain.alert import AlertState
from horolog.domain.alert_events import AlertWay


@dataclass(frozen=True, slots=True)
class Letters:
    """An owner's dead letters: how many (counted up to a bound), and since when the oldest."""

    owner: str | None
    depth: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that alerts are decided from, by the database's clock ``now``.

    ``late`` is how many missed deadlines an owner has that last, or were said in the last minute.
    ``alerts`` are those that were ever raised, as the ends of their streams tell.
    """

    now: datetime
    partitions: int = 0
    rules: Sequence[AlertRule] = ()
    letters: Sequence[Letters] = ()
    late: Mapping[str | None, int] = field(default_factory=dict[str | None, int])
    alerts: Mapping[UUID, AlertState] = field(default_factory=dict[UUID, AlertState])


class SeesAlerts(Protocol):
    """Errors: ``StoreUnavailable``."""

    async def seen(self) -> Seen:
        """In one round trip; where there is neither a rule nor an alert, of next to no cost."""
        ...


class NotDelivered(Exception):
    """A notice did not go out; the message says why, and holds no secret."""


class DeliversNotices(Protocol):
    """Errors: ``NotDelivered``, also when it takes too long."""

    async def deliver(self, rule: AlertRule, way: AlertWay, notice: Mapping[str, Any]) -> None:
        """Tells one of the rule's ways; returns when that has taken it."""
        ...


class KeepsAlertRules(Protocol):
    """Rules, by owner. Errors: ``StoreUnavailable``."""

    def set_rule(self, rule: AlertRule, decision: Decision, *, actor: str) -> Verdict:
        """Appends the decision and keeps the rule, both or neither."""
        ...

    def remove_rule(self, owner: str | None, decision: Decision) -> Verdict:
        """Appends the decision and drops the rule, both or neither."""
        ...

    def rules(self) -> Sequence[AlertRule]:
        """All of them, everybody's first."""
        ...

    def alerts(self) -> Sequence[AlertState]:
        """Every alert that was ever raised, open ones first."""
        ...

    def history(self, owner: str | None, *, after: int, limit: int) -> Sequence[Recorded]:
        """The events of alerts and rules with a position above ``after``, in the log's order;
        those of one owner, if one is named."""
        ...
