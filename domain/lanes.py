"""Lanes: what may only run so many at once, or begin so many a second.

The jobs of one concurrency key share a lane, a job without a key that states a limit has one of its
own, and so has every queue with a limit. A run takes a slot of each of its lanes with its claim and
gives it back when its attempt has ended, whatever came of it: while it waits for a retry it holds
none. A rate is a bucket that holds one second's worth, at least one, and fills evenly.

The log counts under its lock, so a limit is exact however many scanners there are. Each claim is
measured against the limits of its own job and queue as its leader read them: where jobs of one key
state different limits, each keeps to its own.
"""

from dataclasses import dataclass
from uuid import UUID

from horolog.domain.definition import JobDefinition
from horolog.domain.record import record


@record
class Lane:
    """``limit``: how many may hold a slot at once. ``rate``: how many may be claimed a second."""

    name: str
    limit: int | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """What was set for a queue."""

    limit: int | None = None
    rate: float | None = None


def lanes_of(job_id: UUID, definition: JobDefinition, queue: QueueLimit | None) -> list[Lane]:
    """The lanes that a run of the job goes through; none for most jobs."""
    lanes: list[Lane] = []
    limit, rate = definition.concurrency_limit, definition.rate_limit
    if limit is not None or rate is not None:
        key = definition.concurrency_key
        lanes.append(Lane(f"job:{job_id}" if key is None else f"key:{key}", limit, rate))
    if queue is not None:
        lanes.append(Lane(queue_lane(definition.queue), queue.limit, queue.rate))
    return lanes


def queue_lane(queue: str) -> str:
    """The name of a queue's lane."""
    return f"queue:{queue}"
