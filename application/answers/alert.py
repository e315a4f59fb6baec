"""An alert and a rule of alerts, as a client sees them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horolog.application.alerting.rules import AlertRule
from horolog.application.answers.plain import plain
from horolog.domain.alert import AlertState
from horolog.domain.alert_events import AlertCondition, AlertWay


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition of one owner's work that holds ``since`` then: ``value`` at its last notice
    (dead letters, seconds, missed deadlines), at ``threshold`` or beyond. ``told_at`` is the last
    notice, ``unreached`` are the ways that failed to take it."""

    owner: str | None
    condition: AlertCondition
    since: datetime
    value: float
    threshold: float
    told_at: datetime
    unreached: list[AlertWay]

    @classmethod
    def of(cls, state: AlertState) -> "Alert":
        assert state.since is not None
        assert state.noticed_at is not None
        return cls(
            state.owner,
            state.condition,
            state.since,
            state.value,
            state.threshold,
            state.noticed_at,
            state.unreached,
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)


@dataclass(frozen=True, slots=True)
class WatchedOwner:
    """A rule of alerts: of ``owner``, or (``None``) of everybody without one. Ages are seconds.
    ``ways`` is where it sends to, without what may be a secret."""

    owner: str | None
    dead_letters: int | None
    dead_letter_age: float | None
    deadlines: bool
    repeat: float
    ways: dict[AlertWay, str]

    @classmethod
    def of(cls, rule: AlertRule) -> "WatchedOwner":
        return cls(
            rule.owner,
            rule.dead_letters,
            rule.dead_letter_age,
            rule.deadlines,
            rule.repeat,
            rule.shown(),
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
