"""Runs: the execution log, and the story of one occurrence."""

from datetime import UTC, datetime
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from horolog.domain.occurrence import FINISHED, Phase
from horolog.interface.web.page.asking import Looking, Person
from horolog.interface.web.page.rendering import shown

router = APIRouter()

PAGE = 50

Word = Annotated[str, Query(max_length=600)]


def instant_of(text: str) -> datetime | None:
    """What a form or a link gives as a time; UTC where it says no offset, ``None`` for no time."""
    try:
        found = datetime.fromisoformat(text.strip().replace(" ", "T", 1)) if text else None
    except ValueError:
        return None
    if found is None or found.tzinfo is not None:
        return found
    return found.replace(tzinfo=UTC)


@router.get("/runs")
def runs(
    request: Request,
    caller: Person,
    scheduler: Looking,
    state: Word = "",
    job: Word = "",
    since: Word = "",
    until: Word = "",
    after: Word = "",
) -> Response:
    """The newest first."""
    phase: Phase | None = next((one for one in get_args(Phase) if one == state), None)
    chosen = scheduler.job(job) if job else None
    found = scheduler.occurrences(
        job_id=None if chosen is None else chosen.id,
        state=phase,
        since=instant_of(since),
        until=instant_of(until),
        after=after or None,
        limit=PAGE + 1,
        newest_first=True,
    )
    page = found[:PAGE]
    names: dict[object, str] = {}
    for run in page:
        if run.job_id not in names:
            of = scheduler.job(run.job_id)
            names[run.job_id] = of.key or of.name
    return shown(
        request,
        caller,
        "runs.html",
        view="runs",
        runs=page,
        names=names,
        following=page[-1].id if len(found) > PAGE else None,
        states=get_args(Phase),
        state=phase,
        job=job,
        since=since,
        until=until,
    )


@router.get("/runs/{occurrence_id}")
def run(request: Request, caller: Person, scheduler: Looking, occurrence_id: str) -> Response:
    """The story of one."""
    found = scheduler.occurrence(occurrence_id)
    return shown(
        request,
        caller,
        "run.html",
        view="runs",
        run=found,
        job=scheduler.job(found.job_id),
        finished=found.state in FINISHED,
        story=scheduler.explain(found.id),
        events=scheduler.history(found.id, limit=200),
    )
