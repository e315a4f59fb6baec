"""What there is to see of a namespace's health: the store's side and the queue's side.

Everything here is read in a bounded number of bounded reads, so that looking at a system in trouble
does not add to it: counts stop at ``COUNT_LIMIT``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

COUNT_LIMIT = 100_000
"""A count that reaches this means: this many, or more."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A process that announced itself; ``alive`` by the database's clock.

    ``handlers`` are the names that a worker has handlers for; ``None`` where it does not say.
    """

    instance: str
    role: str
    started_at: datetime
    alive: bool
    handlers: list[str] | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class DeadLetterDepth:
    """How many dead letters an owner has, and since when the oldest of them lies there."""

    owner: str | None
    depth: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert that holds ``since`` then; ``unreached`` are the ways that failed to take it."""

    owner: str | None
    condition: str
    since: datetime
    value: float
    threshold: float
    unreached: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Unfinished occurrences of one handler and queue, by state; ``overdue_s`` is how long ago the
    oldest of them was due for something, negative where that lies ahead."""

    name: str
    queue: str
    state: str
    count: int
    overdue_s: float


@dataclass(frozen=True, slots=True)
class Follower:
    """A follower of the log, and how many positions it is behind."""

    name: str
    position: int
    lag: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the last fires were, in seconds from when they were meant to begin."""

    count: int = 0
    p50_s: float = 0.0
    p99_s: float = 0.0
    worst_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """Postgres, as the namespace's tables tell it. Durations are seconds.

    ``clock_offset_s``: how far the database's clock is ahead of this machine's, to within half the
    ``round_trip_s``. ``late_fires`` of ``lateness_s`` at most: rows of the index that are due and
    not claimed. ``claims_late`` and ``starts_late`` are of the last fires' first attempts, to the
    claim and to the start of the handler. ``slot_waits``: fires that wait for a slot of a full
    lane; ``slots_taken``: those in use. ``overdue_looks``: claims and attempts whose window or
    lease has ended unnoticed. ``inbox_waiting``: committed commands not carried out yet, the oldest
    given ``inbox_oldest_s`` ago; ``inbox_refused``: those that were set aside.
    """

    server: str
    schema: int
    schema_of_code: int
    clock_offset_s: float
    round_trip_s: float
    position: int
    jobs: Mapping[str, int]
    late_fires: int
    lateness_s: float
    overdue_looks: int
    partitions: int
    unowned: int
    leaders: Mapping[str, int]
    unpublished: int
    instances: list[Instance] = field(default_factory=list[Instance])
    dead_letters: list[DeadLetterDepth] = field(default_factory=list[DeadLetterDepth])
    waiting: list[Waiting] = field(default_factory=list[Waiting])
    followers: list[Follower] = field(default_factory=list[Follower])
    alerts: list[OpenAlert] = field(default_factory=list[OpenAlert])
    missed_deadlines: int = 0
    """In the last 24 hours."""
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    claims_late: Lateness = Lateness()
    starts_late: Lateness = Lateness()
    slot_waits: int = 0
    slots_taken: int = 0
    inbox_waiting: int = 0
    inbox_oldest_s: float = 0.0
    inbox_refused: int = 0
    lacking_grants: list[str] = field(default_factory=list[str])
    """What the roles of `horolog roles` should have and do not."""

    def alive(self, role: str) -> list[Instance]:
        return [one for one in self.instances if one.alive and one.role == role]


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """One queue: messages that wait, and messages that a worker holds unacknowledged, of which
    the queue hands out ``most_held`` at a time (0: not known)."""

    queue: str
    waiting: int
    held: int
    redelivered: int
    most_held: int = 0


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """NATS and its ready stream; ``stream`` says whether that exists."""

    server: str
    stream: bool
    messages: int = 0
    bytes: int = 0
    max_messages: int = 0
    queues: list[QueueDepth] = field(default_factory=list[QueueDepth])


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """A partition and who leads it: ``instance`` is ``None`` where no lease runs. ``token`` is the
    last election's, ``published`` the position up to which its claims are in the ready queue, and
    ``fires`` how many fires the index holds for it, due or ahead; a bounded count."""

    partition: int
    instance: str | None
    token: int | None
    lease_s: float | None
    published: int
    fires: int
