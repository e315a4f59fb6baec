"""Time travel: the system as it was at an instant, folded from the log up to then."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from horolog.interface.scheduler import Scheduler
from horolog.interface.web.page.asking import Looking, Person
from horolog.interface.web.page.rendering import shown
from horolog.interface.web.page.runs import instant_of

router = APIRouter()

STEPS = 1000
JOBS = 100
ENTRIES = 200

_SPANS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "all": timedelta(days=36_500),
}


@router.get("/past")
def past(
    request: Request,
    caller: Person,
    scheduler: Looking,
    span: Annotated[str, Query(max_length=8)] = "hour",
    step: Annotated[int | None, Query(ge=0, le=STEPS)] = None,
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """``step`` of a thousand through the span, or the instant ``at``."""
    now = datetime.now(UTC)
    span = span if span in _SPANS else "hour"
    begin = max(now - _SPANS[span], _first(scheduler) or now - timedelta(hours=1))
    stated = instant_of(at)
    if stated is not None:
        moment = min(max(stated, datetime(1971, 1, 1, tzinfo=UTC)), now)
    else:
        moment = begin + (now - begin) * ((STEPS if step is None else step) / STEPS)
    jobs = scheduler.jobs(as_of=moment, limit=JOBS + 1)
    entries = scheduler.due_at(moment, limit=ENTRIES)
    return shown(
        request,
        caller,
        "_past.html" if request.headers.get("hx-request") else "past.html",
        view="past",
        span=span,
        spans=tuple(_SPANS),
        steps=STEPS,
        step=round(STEPS * max(0.0, min(1.0, (moment - begin) / max(now - begin, _TICK)))),
        begin=begin,
        end=now,
        moment=moment,
        jobs=jobs[:JOBS],
        more_jobs=len(jobs) > JOBS,
        statuses=Counter(job.status for job in jobs),
        entries=entries,
        states=Counter(entry.state for entry in entries if entry.kind != "job"),
        more_entries=len(entries) == ENTRIES,
    )


_TICK = timedelta(seconds=1)


def _first(scheduler: Scheduler) -> datetime | None:
    """Just before the log begins."""
    first = scheduler.log(limit=1)
    return first[0].recorded_at - _TICK if first else None
