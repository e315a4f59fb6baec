"""An alert: one condition of one owner's work, raised once, repeated while it lasts, then resolved.

    ─Raised─▶ open ─Repeated─▶ open ─Resolved─▶ closed ─Raised─▶ …

Each of these is a notice, which every way that the rule names is to be told once. A way that fails
is tried again, later each time and not for ever: the next notice tells it anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from horolog.domain.alert_events import (
    AlertCondition,
    AlertDelivered,
    AlertDeliveryFailed,
    AlertEvent,
    AlertRaised,
    AlertRepeated,
    AlertResolved,
    AlertWay,
)
from horolog.domain.event import Event
from horolog.domain.origin import Origin
from horolog.domain.text import storable

MAX_TRIES = 10
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 600.0
MAX_ERROR_LENGTH = 500

TAIL = 1 + 3 * MAX_TRIES
"""So many events at the end of a stream hold its last notice and all that was done about it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A condition that holds: ``value`` against ``threshold``."""

    value: float
    threshold: float


@dataclass(frozen=True, slots=True)
class AlertState:
    """``notice`` is the version of the last notice (0: none), made at ``noticed_at``; ``wanted``
    are the ways that it is to reach, ``reached`` those that took it, ``failed`` how often others
    did not and when to try next (``None``: not again)."""

    stream: UUID
    condition: AlertCondition
    owner: str | None
    version: int = 0
    since: datetime | None = None
    is_open: bool = False
    value: float = 0.0
    threshold: float = 0.0
    notice: int = 0
    noticed_at: datetime | None = None
    wanted: tuple[AlertWay, ...] = ()
    reached: frozenset[AlertWay] = frozenset()
    failed: Mapping[AlertWay, tuple[int, datetime | None]] = field(
        default_factory=dict[AlertWay, tuple[int, datetime | None]]
    )

    def pending(self, now: datetime) -> list[tuple[AlertWay, int]]:
        """The ways that are to be told at ``now``, and how often that was tried before."""
        found: list[tuple[AlertWay, int]] = []
        for way in self.wanted:
            tries, retry_at = self.failed.get(way, (0, now))
            if way not in self.reached and retry_at is not None and retry_at <= now:
                found.append((way, tries))
        return found

    @property
    def unreached(self) -> list[AlertWay]:
        """The ways that failed to take the last notice, and have not taken it since."""
        return [way for way in self.wanted if way in self.failed and way not in self.reached]


def evolve(state: AlertState, version: int, at: datetime, event: Event) -> AlertState:
    """The state after ``event``, which the log recorded ``at``; earlier ones may be unknown."""
    match event:
        case AlertRaised():
            return _noticed(
                replace(state, since=at, value=event.value, threshold=event.threshold),
                version, at, event.ways, is_open=True,
            )  # fmt: skip
        case AlertRepeated():
            return _noticed(
                replace(state, since=event.since, value=event.value, threshold=event.threshold),
                version, at, event.ways, is_open=True,
            )  # fmt: skip
        case AlertResolved():
            return _noticed(
                replace(state, since=event.since), version, at, event.ways, is_open=False
            )
        case AlertDelivered() if event.notice == state.notice:
            return replace(state, version=version, reached=state.reached | {event.way})
        case AlertDeliveryFailed() if event.notice == state.notice:
            failed = {**state.failed, event.way: (event.tries, event.retry_at)}
            return replace(state, version=version, failed=failed)
        case _:
            return replace(state, version=version)


def _noticed(
    state: AlertState, version: int, at: datetime, ways: Sequence[AlertWay], *, is_open: bool
) -> AlertState:
    return replace(
        state,
        version=version,
        is_open=is_open,
        notice=version,
        noticed_at=at,
        wanted=tuple(ways),
        reached=frozenset(),
        failed={},
    )


def decide_alert(
    state: AlertState,
    breach: Breach | None,
    *,
    repeat_s: float,
    ways: Sequence[AlertWay],
    now: datetime,
    origin: Origin,
) -> list[AlertEvent]:
    """What there is to say at ``now``: nothing, if it was said already and is not due again."""
    condition, owner, told = state.condition, state.owner, list(ways)
    if not state.is_open:
        if breach is None:
            return []
        return [
            AlertRaised(
                condition=condition, owner=owner, ways=told,
                value=breach.value, threshold=breach.threshold, **origin.fields(),
            )
        ]  # fmt: skip
    assert state.since is not None
    assert state.noticed_at is not None
    if breach is None:
        seconds = round(max(0.0, (now - state.since).total_seconds()), 3)
        return [
            AlertResolved(
                condition=condition, owner=owner, ways=told,
                since=state.since, seconds=seconds, **origin.fields(),
            )
        ]  # fmt: skip
    if now < state.noticed_at + timedelta(seconds=repeat_s):
        return []
    return [
        AlertRepeated(
            condition=condition, owner=owner, ways=told, value=breach.value,
            threshold=breach.threshold, since=state.since, **origin.fields(),
        )
    ]  # fmt: skip


def decide_delivery(
    state: AlertState,
    way: AlertWay,
    tries: int,
    error: str | None,
    *,
    now: datetime,
    origin: Origin,
) -> AlertEvent:
    """What became of the ``tries``-th try to tell ``way``; ``error`` is absent where it took it."""
    if error is None:
        return AlertDelivered(notice=state.notice, way=way, tries=tries, **origin.fields())
    wait_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** (tries - 1))
    return AlertDeliveryFailed(
        notice=state.notice,
        way=way,
        tries=tries,
        error=storable(error, MAX_ERROR_LENGTH),
        retry_at=None if tries >= MAX_TRIES else now + timedelta(seconds=wait_s),
        **origin.fields(),
    )
