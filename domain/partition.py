"""A partition: a slice of the jobs, and the unit of leadership.

An election's fencing token is the version of its Elected event in the partition's own stream: the
append-only log is the fence, and tokens grow by construction.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from horolog.domain.event import Event
from horolog.domain.origin import Origin


class PartitionEvent(Event):
    """Any of the events below."""


class Elected(PartitionEvent, topic="partition.elected.1"):
    """``instance`` may claim in this partition, under the token that is this event's version."""

    partition: int
    instance: str
    lease: float


class Released(PartitionEvent, topic="partition.released.1"):
    """The leader gave the partition back by itself: a stop, or a newcomer's fair share."""

    partition: int
    instance: str


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who leads a partition; ``token`` is ``None`` while nobody does."""

    stream: UUID
    partition: int
    version: int = 0
    instance: str | None = None
    token: int | None = None


def evolve(state: PartitionState, event: Event) -> PartitionState:
    """The state after ``event``, the next one in the partition's stream."""
    version = state.version + 1
    match event:
        case Elected():
            return replace(state, version=version, instance=event.instance, token=version)
        case Released():
            return replace(state, version=version, instance=None, token=None)
        case _:
            raise AssertionError(f"{event.topic} is no event of a partition")


def decide_election(
    state: PartitionState, instance: str, lease_s: float, *, origin: Origin
) -> Elected:
    """A new term; the log accepts it only while the old lease has ended and the version stands."""
    return Elected(partition=state.partition, instance=instance, lease=lease_s, **origin.fields())


def decide_release(state: PartitionState, instance: str, *, origin: Origin) -> list[PartitionEvent]:
    """The end of a term by the leader's own will; others' terms are not touched."""
    if state.instance != instance:
        return []
    return [Released(partition=state.partition, instance=instance, **origin.fields())]


def fair_share(partitions: int, instances: int, rank: int = 0) -> int:
    """How many partitions the instance of this ``rank`` (from 0) should lead, so that all are led
    and none of ``instances`` leads two more than another."""
    each, over = divmod(partitions, max(instances, 1))
    return each + (rank < over)
