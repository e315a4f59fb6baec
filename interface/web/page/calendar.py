"""A month of a job: what became of its past fires, day by day, and how many lie ahead."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from horolog.application.answers.job import Job
from horolog.domain.schedule.zone_data import zone
from horolog.interface.scheduler import Scheduler

AHEAD: Final = 4000
"""Fire times ahead that are counted."""
BUSY: Final = 100_000
"""Of a job that has fired more often, only the runs of the last day are counted."""
LOOK_AHEAD: Final = 7
"""Days ahead that the present month shows, beyond its end where it is nearly over."""
BUCKET_S: Final = 900
"""The offsets of all zones are multiples of it, so a stretch never lies in two local days."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day in the job's zone. ``ahead`` is ``None`` where nobody has counted so far."""

    day: date
    begin: datetime
    end: datetime
    inside: bool
    today: bool
    succeeded: int
    dead: int
    skipped: int
    ahead: int | None


@dataclass(frozen=True, slots=True)
class Month:
    """Whole weeks, from Monday on, so the days beside the month are there too; ``busy``: only the
    runs of the last day were counted."""

    first: date
    before: str
    after: str
    zone: str
    days: Sequence[Day]
    busy: bool


def month_of(text: str | None, today: date) -> date:
    """The first of the month that "2027-03" names; of the present one where it names none."""
    try:
        found = datetime.strptime(text or "", "%Y-%m").date()  # noqa: DTZ007 - a month has no zone
    except ValueError:
        return today.replace(day=1)
    return found if 1970 < found.year < 9000 else today.replace(day=1)


def month(scheduler: Scheduler, job: Job, text: str | None, now: datetime) -> Month:
    """The month of a job."""
    shown = job.schedule.clock_zone
    local = zone(shown)
    today = now.astimezone(local).date()
    first = month_of(text, today)
    following = (first + timedelta(days=32)).replace(day=1)
    begin = first - timedelta(days=first.weekday())
    is_present = first <= today < following
    end = max(following, today + timedelta(days=LOOK_AHEAD)) if is_present else following
    count = -(-(end - begin).days // 7) * 7
    edges = [
        datetime.combine(begin + timedelta(days=n), datetime.min.time(), local).astimezone(UTC)
        for n in range(count + 1)
    ]
    past: dict[date, Counter[str]] = defaultdict(Counter[str])
    since = edges[0] if job.fires <= BUSY else max(edges[0], now - timedelta(days=1))
    if since <= now:
        for row in scheduler.statistics(
            since=since, until=edges[-1], bucket_s=BUCKET_S, job_id=job.id, limit=10_000
        ):
            day = past[row.bucket.astimezone(local).date()]
            day["succeeded"] += row.succeeded
            day["dead"] += row.dead
            day["skipped"] += row.skipped + row.discarded
    ahead, counted_to = _ahead(scheduler, job, edges[-1], now)
    per_day = Counter(at.astimezone(local).date() for at in ahead)
    days: list[Day] = []
    for number in range(count):
        day = begin + timedelta(days=number)
        seen = past[day]
        known = counted_to is None or edges[number] < counted_to
        days.append(
            Day(
                day,
                edges[number],
                edges[number + 1],
                day.month == first.month,
                day == today,
                seen["succeeded"],
                seen["dead"],
                seen["skipped"],
                per_day[day] if known else None,
            )
        )
    return Month(
        first,
        (first - timedelta(days=1)).strftime("%Y-%m"),
        following.strftime("%Y-%m"),
        shown,
        days,
        since > edges[0],
    )


def _ahead(
    scheduler: Scheduler, job: Job, end: datetime, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """The fire times before ``end``, and up to when they were counted where these are not all."""
    if end <= now or job.status != "active":
        return [], None
    fires = [fire.at for fire in scheduler.upcoming(job.id, AHEAD)]
    inside = [at for at in fires if at < end]
    all_counted = len(inside) < len(fires) or len(fires) < AHEAD
    return inside, None if all_counted else inside[-1]
