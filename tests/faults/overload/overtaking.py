"""How many slow runs were begun while a quick one waited: its lateness by order, not by time.

A machine that is busy with other things makes everything late, the slow runs too. So the measure is
not seconds: it is how many runs of the flood went first, between the registration of a quick run
and its beginning. Where queues do not stand in each other's way that is as few in the flood as when
all is calm, however long the flood is. The seconds are told beside it, by who let it wait: the
scanner until the claim, the queue and the worker from then on.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from horolog.infrastructure.postgres.database import Database

_QUICK = """
    SELECT r.position, a.position,
           extract(epoch FROM c.recorded_at - r.recorded_at)::float8,
           extract(epoch FROM a.recorded_at - c.recorded_at)::float8
    FROM :schema.jobs j
    JOIN :schema.job_events r ON r.stream = j.id AND r.topic = 'job.registered.1'
    JOIN :schema.executions x ON x.job_id = j.id
    JOIN :schema.occurrence_events c ON c.stream = x.id AND c.topic = 'occurrence.claimed.1'
    JOIN :schema.occurrence_events a ON a.stream = x.id AND a.topic = 'occurrence.attempted.1'
    WHERE j.name = 'quick' ORDER BY r.position
"""

_SLOW = """
    SELECT a.position FROM :schema.jobs j
    JOIN :schema.executions x ON x.job_id = j.id
    JOIN :schema.occurrence_events a ON a.stream = x.id AND a.topic = 'occurrence.attempted.1'
    WHERE j.name = 'slow' ORDER BY a.position
"""


@dataclass(frozen=True)
class Waits:
    """Of the quick runs of one part: each list is sorted."""

    overtaken: list[int]
    until_claim_s: list[float]
    from_claim_s: list[float]

    def __str__(self) -> str:
        def both(values: Sequence[float], digits: int) -> str:
            return f"{of(values, 0.5):8.{digits}f} {of(values, 0.99):8.{digits}f}"

        return (
            f"{both(self.overtaken, 0)}   {both(self.until_claim_s, 2)}"
            f"   {both(self.from_claim_s, 2)}"
        )


def of(values: Sequence[float], part: float) -> float:
    """A percentile of sorted values; 0 where there are none."""
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def waits(database: Database, after: int, until: int) -> Waits:
    """Of the quick runs registered in this part of the log."""
    slow = [row[0] for row in database.query(database.sql(_SLOW))]
    rows = [row for row in database.query(database.sql(_QUICK)) if after < row[0] <= until]
    return Waits(
        sorted(bisect_left(slow, row[1]) - bisect_left(slow, row[0]) for row in rows),
        sorted(row[2] for row in rows),
        sorted(row[3] for row in rows),
    )
