"""Backfilling: runs for the fire times of a range that have no occurrence yet.

An occurrence of a backfill has the id that the schedule's own firing at that time has: whatever has
run once under that key is found, and nothing runs twice. So only fire times that the schedule has
left behind are ordered; those still to come are the schedule's.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol
from uuid import UUID

from horolog.application.commands.changing import known_job
from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.decision import Decision, decide_on_job
from horolog.domain.errors import InvalidSchedule
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState, refuse_if
from horolog.domain.job_events import BackfillRequested
from horolog.domain.occurrence import ordered
from horolog.domain.origin import Origin
from horolog.projections.rows import occurrence_next_run

PER_EVENT = 1_000
MAX_FIRES = 100_000
"""The most fire times of one backfill; more would be a mistake more often than a wish."""

_TICK = timedelta(microseconds=1)


class FindsOccurrences(Protocol):
    """Errors: ``StoreUnavailable``."""

    def existing(self, ids: Sequence[UUID]) -> set[UUID]:
        """Those of ``ids`` (at most some thousands) that are occurrences, finished or not."""
        ...


def backfill(
    context: Context,
    occurrences: FindsOccurrences,
    job_id: UUID,
    start: datetime,
    end: datetime,
    *,
    reason: str | None = None,
) -> int:
    """Orders runs for the fire times from ``start`` to ``end`` (both included); returns how many.

    Each append orders at most ``PER_EVENT``; what is ordered stays so if a later one fails, and the
    same call then orders the rest. Raises ``UnknownJob``, ``NotAllowed`` for a cancelled job,
    ``InvalidSchedule`` for a range that is empty, has no zone, or holds too many fire times.
    """
    _check_range(start, end)
    job = known_job(context, job_id)
    refuse_if(job, {"cancelled"}, "backfill")
    fires = _left_behind(context, job, start, end)
    origin = context.origin(reason)
    asked = (start, end)
    return sum(
        _order(context, occurrences, job_id, asked, chunk, origin) for chunk in _chunks(fires)
    )


def _left_behind(context: Context, job: JobState, start: datetime, end: datetime) -> list[datetime]:
    now = context.clock.now()
    before = now if job.next_fire is None else min(now, job.next_fire - _TICK)
    schedule = job.definition.parsed_schedule()
    found = islice(schedule.between(start - _TICK, min(end, before)), MAX_FIRES + 1)
    fires = [fire.at for fire in found]
    if len(fires) > MAX_FIRES:
        raise InvalidSchedule(
            f"the range from {start.isoformat()} to {end.isoformat()} holds more than {MAX_FIRES}"
            f" fire times of job {job.id}: ask for a shorter one, and for the next one afterwards"
        )
    return fires


def _order(
    context: Context,
    occurrences: FindsOccurrences,
    job_id: UUID,
    asked: tuple[datetime, datetime],
    fires: Sequence[datetime],
    origin: Origin,
) -> int:
    for _ in range(MAX_TRIES):
        job = known_job(context, job_id)
        refuse_if(job, {"cancelled"}, "backfill")
        ids = {occurrence_id(job_id, fire): fire for fire in fires}
        missing = {i: ids[i] for i in ids.keys() - occurrences.existing(list(ids))}
        if not missing:
            return 0
        decision = _decision(context, job, asked, dict(sorted(missing.items())), origin)
        if context.accepts(decision) is not None:
            return len(missing)
    raise too_busy(f"job {job_id}")


def _decision(
    context: Context,
    job: JobState,
    asked: tuple[datetime, datetime],
    missing: dict[UUID, datetime],
    origin: Origin,
) -> Decision:
    start, end = asked
    event = BackfillRequested(start=start, end=end, fires=list(missing.values()), **origin.fields())
    decision, _ = decide_on_job(job, job.id, [event])
    now = context.clock.now()
    decision.next_runs += [
        occurrence_next_run(ordered(identity, job.id, job.partition, fire, "backfill", due=now))
        for identity, fire in missing.items()
    ]
    return decision


def _chunks(fires: Sequence[datetime]) -> Iterator[Sequence[datetime]]:
    for first in range(0, len(fires), PER_EVENT):
        yield fires[first : first + PER_EVENT]


def _check_range(start: datetime, end: datetime) -> None:
    for name, moment in (("start", start), ("end", end)):
        if moment.tzinfo is None:
            raise InvalidSchedule(f"{name}={moment.isoformat()} has no zone: add an offset")
        if not 1970 <= moment.year < 9999:
            raise InvalidSchedule(f"{name}={moment.isoformat()}: a backfill goes from 1970 to 9998")
    if end < start:
        raise InvalidSchedule(
            f"end={end.isoformat()} is before start={start.isoformat()}: give the earlier first"
        )
