"""The limits of queues: a small table that the scanner reads beside each job (migrations/0008)."""

from collections.abc import Sequence

from horolog.application.answers.limited_queue import LimitedQueue
from horolog.domain.lanes import QueueLimit
from horolog.infrastructure.postgres.database import Database

_LIMIT = "SELECT :schema.limit_queue(%s, %s, %s, %s)"

# The primary key of queue_limits; lane_slots_lane and next_runs_lanes, both bounded.
_LIMITED = """
    SELECT q.queue, q.most, q.rate,
           (SELECT count(*) FROM :schema.lane_slots s WHERE s.lane = 'queue:' || q.queue),
           (SELECT count(*) FROM (SELECT FROM :schema.next_runs r
                                  WHERE r.lane = 'queue:' || q.queue LIMIT 100000) waiting)
    FROM :schema.queue_limits q ORDER BY q.queue LIMIT 10000
"""


class PostgresQueueLimits:
    """As :class:`horolog.application.commands.limiting_queues.LimitsQueues` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._limit = database.sql(_LIMIT)
        self._limited = database.sql(_LIMITED)

    def limit_queue(self, queue: str, limit: QueueLimit | None, *, actor: str) -> None:
        most, rate = (None, None) if limit is None else (limit.limit, limit.rate)
        self._database.query(self._limit, (queue, most, rate, actor))

    def limited_queues(self) -> Sequence[LimitedQueue]:
        return [LimitedQueue(*row) for row in self._database.query(self._limited)]
