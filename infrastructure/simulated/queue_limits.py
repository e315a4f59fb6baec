"""The limits of queues in memory."""

from collections.abc import Sequence
from uuid import UUID

from horolog.application.answers.limited_queue import LimitedQueue
from horolog.domain.lanes import QueueLimit, queue_lane
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedQueueLimits:
    """As :class:`horolog.application.commands.limiting_queues.LimitsQueues` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log
        self._tables = log.tables

    def limit_queue(self, queue: str, limit: QueueLimit | None, *, actor: str) -> None:
        del actor
        lane = queue_lane(queue)
        if limit is None:
            self._tables.queue_limits.pop(queue, None)
        else:
            self._tables.queue_limits[queue] = limit
        self._tables.slots[lane] = self._held(queue) if limit and limit.limit else set()
        self._log.freed(lane)

    def limited_queues(self) -> Sequence[LimitedQueue]:
        return [
            LimitedQueue(
                queue,
                limit.limit,
                limit.rate,
                len(self._tables.slots.get(queue_lane(queue), ())),
                sum(row.lane == queue_lane(queue) for row in self._tables.next_runs.values()),
            )
            for queue, limit in sorted(self._tables.queue_limits.items())
        ]

    def _held(self, queue: str) -> set[UUID]:
        return {
            identity
            for identity, row in self._tables.next_runs.items()
            if row.run.look and self._tables.jobs[row.run.job_id].queue == queue
        }
