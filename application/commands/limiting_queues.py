"""Limiting a queue: how many of its runs at once, how many a second, over all machines.

A setting and no event: it says nothing about any job. Claims that are decided after it keep to it;
what is claimed or runs already counts, and goes on.
"""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Protocol

from horolog.application.answers.limited_queue import LimitedQueue
from horolog.domain.definition import QUEUE_PATTERN
from horolog.domain.errors import InvalidPolicy
from horolog.domain.lanes import QueueLimit

MAX_LIMIT = 10_000
MAX_RATE, MIN_RATE = 100_000.0, 0.0001


class LimitsQueues(Protocol):
    """Errors: ``StoreUnavailable``."""

    def limit_queue(self, queue: str, limit: QueueLimit | None, *, actor: str) -> None:
        """Sets the limits of a queue, or takes them away."""
        ...

    def limited_queues(self) -> Sequence[LimitedQueue]:
        """The queues that have limits, by name; counts of those that wait are bounded."""
        ...


def limit_queue(
    queues: LimitsQueues, queue: str, *, limit: int | None, rate: float | None, actor: str
) -> None:
    """Raises ``InvalidPolicy`` for a name that no queue can have, or a limit out of range."""
    if not re.fullmatch(QUEUE_PATTERN, queue):
        raise InvalidPolicy(
            f"queue={queue!r}: a queue's name has 1 to 64 letters, digits, _ and - only"
        )
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise InvalidPolicy(f"limit={limit!r}: at least 1 and at most {MAX_LIMIT} runs at once")
    if rate is not None and not (isfinite(rate) and MIN_RATE <= rate <= MAX_RATE):
        raise InvalidPolicy(f"rate={rate!r}: from {MIN_RATE} to {MAX_RATE:g} runs a second")
    wanted = None if limit is None and rate is None else QueueLimit(limit, rate)
    queues.limit_queue(queue, wanted, actor=actor)
