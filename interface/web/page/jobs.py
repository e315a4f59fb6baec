"""Jobs: the list, and one with its calendar, its runs and the history of its changes."""

from datetime import UTC, datetime
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from horolog.domain.errors import UnknownJob
from horolog.domain.job import JobStatus
from horolog.interface.web.page.asking import Looking, Person
from horolog.interface.web.page.calendar import month
from horolog.interface.web.page.rendering import shown

router = APIRouter()

PAGE = 50
CHANGES = 100

Word = Annotated[str, Query(max_length=600)]


@router.get("/jobs")
def jobs(
    request: Request,
    caller: Person,
    scheduler: Looking,
    status: Word = "",
    name: Word = "",
    label: Word = "",
    after: Word = "",
    find: Word = "",
) -> Response:
    """The list; ``find`` leads straight to the job of an id or a key."""
    if find:
        try:
            return RedirectResponse(f"/jobs/{scheduler.job(find).id}", 303)
        except UnknownJob:
            name = name or find
    known: JobStatus | None = next((s for s in get_args(JobStatus) if s == status), None)
    found = scheduler.jobs(
        status=known,
        name=name or None,
        label=label or None,
        after=after or None,
        limit=PAGE + 1,
    )
    return shown(
        request,
        caller,
        "jobs.html",
        view="jobs",
        jobs=found[:PAGE],
        following=found[PAGE - 1].id if len(found) > PAGE else None,
        statuses=get_args(JobStatus),
        status=known,
        name=name,
        label=label,
    )


@router.get("/jobs/{job_id}")
def job(
    request: Request,
    caller: Person,
    scheduler: Looking,
    job_id: str,
    month_shown: Annotated[str, Query(alias="month", max_length=7)] = "",
) -> Response:
    """One job."""
    found = scheduler.job(job_id)
    now = datetime.now(UTC)
    last = max(0, found.version - CHANGES)
    return shown(
        request,
        caller,
        "job.html",
        view="jobs",
        job=found,
        month=month(scheduler, found, month_shown, now),
        upcoming=scheduler.upcoming(found.id, 8),
        runs=scheduler.occurrences(job_id=found.id, limit=12, newest_first=True),
        changes=scheduler.changes(found.id, after=last, limit=CHANGES)[::-1],
    )
