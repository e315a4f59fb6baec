"""What one account of a world begins with: its log as JSON, its jobs and its runs, and a voice.

``CHANGING`` and ``SLACK`` are how exactly an account can know: a change and a fire time that meet
are seen in either order, and what took a moment was not late.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic_core import from_json
from tests.simulation.plans.plan import COMMANDS

if TYPE_CHECKING:
    from tests.simulation.world import World

CHANGING = timedelta(seconds=40)
"""What falls due this near to a change of its job may be seen as before or as after it."""

SLACK = timedelta(seconds=0.5)

ENDS = frozenset({"succeeded", "dead_lettered", "skipped", "stopped", "discarded"})


@dataclass(slots=True)
class Event:
    position: int
    at: datetime
    stream: UUID
    version: int
    kind: str
    state: dict[str, Any]


@dataclass(slots=True)
class Era:
    """A schedule, from when to when it was in force."""

    schedule: dict[str, Any]
    since: datetime
    until: datetime


@dataclass(slots=True)
class Job:
    """A job by its own events. ``held``: from when to when no fire time was to be claimed."""

    spec: dict[str, Any]
    eras: list[Era] = field(default_factory=list[Era])
    held: list[tuple[datetime, datetime]] = field(default_factory=list[tuple[datetime, datetime]])
    skipped: list[Event] = field(default_factory=list[Event])
    payloads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    cancelled: datetime | None = None
    paused: datetime | None = None
    completed: datetime | None = None


@dataclass(slots=True)
class Life:
    """An occurrence by its events."""

    job: UUID
    fire: datetime
    kind: str
    events: list[Event] = field(default_factory=list[Event])

    @property
    def last(self) -> str:
        return self.events[-1].kind


class Account:
    """Of one world that is at rest; what does not agree is said, and stays in ``found``."""

    def __init__(self, world: "World") -> None:
        history = world.keeping.history()
        self.world = world
        self.found: list[str] = []
        self.events = [
            Event(
                e.position,
                e.recorded_at,
                e.stream,
                e.version,
                e.topic.split(".")[1],
                from_json(e.state),
            )
            for e in history
        ]
        self.about = {e.position: e.topic.split(".")[0] for e in history}
        self.jobs: dict[UUID, Job] = {}
        self.lives: dict[UUID, Life] = {}
        self.changes: dict[UUID, list[Event]] = defaultdict(list)
        lease_s = world.plan.worker_settings.lease_s
        self.away_for_long = any(
            (a.kind.startswith(("log_", "slow_log")) and a.seconds > lease_s / 4)
            or (a.kind == "log_clock_step" and a.amount > lease_s / 4)
            for a in world.plan.actions
        )
        self.troubled = any(
            a.kind not in COMMANDS and not a.target.startswith("follower")
            for a in world.plan.actions
        )

    def say(self, what: str) -> None:
        self.found.append(what)

    def seconds(self, at: datetime) -> float:
        """The world's seconds at an instant of the log's clock, or more."""
        return (at - self.world.plan.start).total_seconds()
