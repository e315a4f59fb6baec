"""The log and what it answers: events, what ran and what did not, figures, what was due when."""

from collections.abc import Sequence
from datetime import datetime
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, WithJsonSchema
from starlette.responses import JSONResponse

from horolog.application.answers.execution import Execution
from horolog.application.answers.index_entry import IndexEntry
from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.answers.skip import Skip
from horolog.application.answers.statistics import Statistics
from horolog.application.queries.asking import checked_topics
from horolog.application.queries.statistics import Grouping
from horolog.domain.event import topics as known_topics
from horolog.domain.failure import FailureKind
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job_events import SkipCause
from horolog.domain.occurrence import Phase
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.api.answers import LogPage, Many, Page, Position
from horolog.interface.web.api.asking import (
    After,
    Instant,
    Limit,
    Number,
    Reading,
    Text,
    page,
)

router = APIRouter(tags=["log"])

POLL_S: Final = 0.2
MAX_WAIT_S: Final = 30.0
MOST_WAITING: Final = 16
_WAITING = BoundedSemaphore(MOST_WAITING)

Topic = Annotated[
    Text,
    WithJsonSchema(
        {
            "type": "string",
            "enum": sorted({*known_topics(), *(t.partition(".")[0] for t in known_topics())}),
        }
    ),
]
JobOf = Annotated[Text | None, Query(description="A job's id.")]
Since = Annotated[Instant | None, Query(description="Fire times from here on.")]
Until = Annotated[Instant | None, Query(description="Fire times before this.")]


@router.get("/log", response_model=LogPage)
def log(
    scheduler: Reading,
    after: Number = 0,
    topic: Annotated[Topic | None, Query(description="Of an event, or a group.")] = None,
    wait: Annotated[
        float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait for an event.")
    ] = 0.0,
    limit: Limit = 100,
) -> JSONResponse:
    """All events with a position above `after`, in their one order.

    With `wait` the answer comes with the first event, or empty after that time. Go on at `next`; on
    the last page at `after=` the `position` of the answer.
    """
    topics = None if topic is None else checked_topics(topic)
    end, events = _awaited(scheduler, after, topics, limit + 1, wait)
    shown, more = events[:limit], len(events) > limit
    # What other topics wrote up to ``end`` need not be looked at again.
    reached = shown[-1].position if more else max(end, after, *(e.position for e in shown), 0)
    chosen = "" if topic is None else f"&topic={topic}"
    following = f"/api/v1/log?after={reached}&limit={limit}{chosen}" if more else None
    return JSONResponse(
        {"items": [e.to_dict() for e in shown], "next": following, "position": reached},
        headers={} if following is None else {"Link": f'<{following}>; rel="next"'},
    )


def _awaited(
    scheduler: Scheduler, after: int, topics: Sequence[str] | None, limit: int, wait_s: float
) -> tuple[int, list[LoggedEvent]]:
    """How far the log had come, and the events up to there at least.

    Each one who waits holds a thread: beyond ``MOST_WAITING`` nobody does, so that those who only
    want an answer get one.
    """
    waits = wait_s > 0 and _WAITING.acquire(blocking=False)
    deadline = monotonic() + (wait_s if waits else 0.0)
    try:
        while True:
            end = scheduler.position()
            events = scheduler.log(after=after, topics=topics, limit=limit)
            if events or monotonic() >= deadline:
                return end, events
            sleep(min(POLL_S, max(0.0, deadline - monotonic())))
    finally:
        if waits:
            _WAITING.release()


@router.get("/log/position", response_model=Position)
def position(scheduler: Reading) -> JSONResponse:
    """How far the log has come."""
    return JSONResponse({"position": scheduler.position()})


@router.get("/due", response_model=Page[IndexEntry])
def due_at(
    request: Request, scheduler: Reading, at: Instant, after: After = None, limit: Limit = 100
) -> JSONResponse:
    """What the next-run index held at an instant, folded from the log as it was then."""
    return page(
        request,
        limit,
        lambda most: scheduler.due_at(at, after=after, limit=most),
        lambda entry: entry.id,
    )


@router.get("/due/next", response_model=Many[IndexEntry])
def due_next(scheduler: Reading, until: Instant, limit: Limit = 100) -> JSONResponse:
    """What the next-run index holds now to be fired before `until`, by due time."""
    entries = scheduler.due_next(until, limit=limit)
    return JSONResponse({"items": [entry.to_dict() for entry in entries]})


@router.get("/executions", response_model=Page[Execution])
def executions(
    request: Request,
    scheduler: Reading,
    since: Since = None,
    until: Until = None,
    by_end: bool = False,
    job_id: JobOf = None,
    name: Text | None = None,
    queue: Text | None = None,
    label: Text | None = None,
    owner: Text | None = None,
    state: Phase | None = None,
    kind: OccurrenceKind | None = None,
    failure: FailureKind | None = None,
    worker: Text | None = None,
    after: After = None,
    limit: Limit = 100,
) -> JSONResponse:
    """What ran: when, by whom, how long and how late."""
    return page(
        request,
        limit,
        lambda most: scheduler.executions(
            since=since,
            until=until,
            by_end=by_end,
            job_id=job_id,
            name=name,
            queue=queue,
            label=label,
            owner=owner,
            state=state,
            kind=kind,
            failure=failure,
            worker=worker,
            after=after,
            limit=most,
        ),
        lambda execution: execution.id,
    )


@router.get("/skips", response_model=Page[Skip])
def skips(
    request: Request,
    scheduler: Reading,
    since: Since = None,
    until: Until = None,
    job_id: JobOf = None,
    name: Text | None = None,
    queue: Text | None = None,
    label: Text | None = None,
    owner: Text | None = None,
    cause: SkipCause | None = None,
    after: After = None,
    limit: Limit = 100,
) -> JSONResponse:
    """What did not run, and why."""
    return page(
        request,
        limit,
        lambda most: scheduler.skips(
            since=since,
            until=until,
            job_id=job_id,
            name=name,
            queue=queue,
            label=label,
            owner=owner,
            cause=cause,
            after=after,
            limit=most,
        ),
        lambda skip: skip.id,
    )


def _place(after: str) -> str:
    bucket, _, _ = after.partition("|")
    moment = datetime.fromisoformat(bucket)
    if moment.tzinfo is None:
        raise ValueError("a bucket's begin and its group, as `next` has them")
    return after


@router.get("/statistics", response_model=Page[Statistics])
def statistics(
    request: Request,
    scheduler: Reading,
    since: Since = None,
    until: Until = None,
    bucket_s: Annotated[int, Query(ge=1, le=366 * 86_400, description="Seconds.")] = 86_400,
    by: Grouping = "job",
    job_id: JobOf = None,
    name: Text | None = None,
    queue: Text | None = None,
    label: Text | None = None,
    owner: Text | None = None,
    after: Annotated[str | None, AfterValidator(lambda v: v if v is None else _place(v))] = None,
    limit: Limit = 100,
) -> JSONResponse:
    """Runs, failures, durations and lateness of finished occurrences, in stretches of time."""
    behind = None
    if after is not None:
        bucket, _, group = after.partition("|")
        behind = (datetime.fromisoformat(bucket), group)
    return page(
        request,
        limit,
        lambda most: scheduler.statistics(
            since=since,
            until=until,
            bucket_s=bucket_s,
            by=by,
            job_id=job_id,
            name=name,
            queue=queue,
            label=label,
            owner=owner,
            after=behind,
            limit=most,
        ),
        lambda row: f"{row.bucket.isoformat()}|{row.group}",
    )
