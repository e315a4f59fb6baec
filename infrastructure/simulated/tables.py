"""What a namespace holds, in memory: the events and the rows that are kept beside them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from horolog.domain.ids import partition_stream
from horolog.domain.lanes import QueueLimit
from horolog.projections.rows import DeadLetter, Execution, JobRow, NextRun

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is kept: what is in it is read anew each time, as from a real log."""

    position: int
    recorded_at: datetime
    stream: UUID
    version: int
    topic: str
    state: bytes


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A row of the next-run index: when it is due by the log's clock, and which append wrote it.

    ``lane`` is the full one in which it waits; where that is for the lane's rate, until ``turn``.
    """

    run: NextRun
    due_at: datetime
    position: int
    lane: str | None = None
    turn: datetime | None = None

    @property
    def fires_at(self) -> datetime | None:
        """When it is due as a fire; ``None`` while it waits for a slot, and for a look."""
        if self.run.look:
            return None
        return self.due_at if self.lane is None else self.turn


@dataclass(slots=True)
class Sealed:
    """A subject: the id of its key, and what was sealed with it; no values any more once it is
    forgotten."""

    key: UUID
    values: list[bytes] | None = field(default_factory=list[bytes])


@dataclass(slots=True)
class PartitionRow:
    """Who leads a partition; nobody once ``lease_until`` lies in the past."""

    partition: int
    stream: UUID
    version: int = 0
    instance: str | None = None
    token: int | None = None
    lease_until: datetime = LONG_AGO
    published: int = 0


@dataclass(slots=True)
class Tables:
    """All of it. Events are in the order of their positions; ``written`` are the rows of the index
    that were written since somebody who keeps an order of them last looked. ``slots`` are those
    taken in each lane, ``full_at`` is when the bucket of a lane's rate is full again. ``scanners``
    are the instances that announced themselves, each with until when it is believed to live.
    ``sealed`` is what stands behind sealed values, by subject.
    """

    events: list[StoredEvent] = field(default_factory=list[StoredEvent])
    streams: dict[UUID, list[StoredEvent]] = field(default_factory=dict[UUID, list[StoredEvent]])
    places: set[tuple[UUID, int]] = field(default_factory=set[tuple[UUID, int]])
    next_runs: dict[UUID, IndexRow] = field(default_factory=dict[UUID, IndexRow])
    jobs: dict[UUID, JobRow] = field(default_factory=dict[UUID, JobRow])
    executions: dict[UUID, Execution] = field(default_factory=dict[UUID, Execution])
    dead_letters: dict[UUID, DeadLetter] = field(default_factory=dict[UUID, DeadLetter])
    partitions: dict[int, PartitionRow] = field(default_factory=dict[int, PartitionRow])
    counters: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[str, set[UUID]] = field(default_factory=dict[str, set[UUID]])
    full_at: dict[str, datetime] = field(default_factory=dict[str, datetime])
    queue_limits: dict[str, QueueLimit] = field(default_factory=dict[str, QueueLimit])
    scanners: dict[str, datetime] = field(default_factory=dict[str, datetime])
    sealed: dict[str, Sealed] = field(default_factory=dict[str, "Sealed"])
    last_position: int = 0
    written: set[UUID] = field(default_factory=set[UUID])

    def record(
        self, recorded_at: datetime, stream: UUID, version: int, topic: str, state: bytes
    ) -> None:
        """Adds an event at the end of the log, whatever it says."""
        assert (stream, version) not in self.places, (stream, version)
        self.last_position += 1
        event = StoredEvent(self.last_position, recorded_at, stream, version, topic, state)
        self.events.append(event)
        self.streams.setdefault(stream, []).append(event)
        self.places.add((stream, version))


def empty_tables(namespace: str, partitions: int) -> Tables:
    """A new namespace."""
    streams = (partition_stream(namespace, number) for number in range(partitions))
    rows = {number: PartitionRow(number, stream) for number, stream in enumerate(streams)}
    return Tables(partitions=rows)
