"""The log and what it answers: events, what ran and what did not, figures, what was due when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
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
    Instant,
    Limit,
    Listing,
    Number,
    Paged,
    Reading,
    Text,
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


@dataclass(frozen=True, kw_only=True)
class DueAt(Listing):
    """What was due at an instant."""

    at: Instant


@router.get("/due", response_model=Page[IndexEntry])
def due_at(scheduler: Reading, asked: Annotated[DueAt, Depends()]) -> JSONResponse:
    """What the next-run index held at an instant, folded from the log as it was then."""

    def ask(*, at: datetime, **more: Any) -> list[IndexEntry]:
        return scheduler.due_at(at, **more)

    return asked.page(ask)


@router.get("/due/next", response_model=Many[IndexEntry])
def due_next(scheduler: Reading, until: Instant, limit: Limit = 100) -> JSONResponse:
    """What the next-run index holds now to be fired before `until`, by due time."""
    entries = scheduler.due_next(until, limit=limit)
    return JSONResponse({"items": [entry.to_dict() for entry in entries]})


@dataclass(frozen=True, kw_only=True)
class OfJobs(Paged):
    """What happened to jobs of some kind within some time."""

    since: Since = None
    until: Until = None
    job_id: JobOf = None
    name: Text | None = None
    queue: Text | None = None
    label: Text | None = None
    owner: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Executions(OfJobs, Listing):
    """Which runs."""

    by_end: bool = False
    state: Phase | None = None
    kind: OccurrenceKind | None = None
    failure: FailureKind | None = None
    worker: Text | None = None


@router.get("/executions", response_model=Page[Execution])
def executions(scheduler: Reading, asked: Annotated[Executions, Depends()]) -> JSONResponse:
    """What ran: when, by whom, how long and how late."""
    return asked.page(scheduler.executions)


@dataclass(frozen=True, kw_only=True)
class Skips(OfJobs, Listing):
    """Which fire times."""

    cause: SkipCause | None = None


@router.get("/skips", response_model=Page[Skip])
def skips(scheduler: Reading, asked: Annotated[Skips, Depends()]) -> JSONResponse:
    """What did not run, and why."""
    return asked.page(scheduler.skips)


def _behind(after: str | None) -> tuple[datetime, str] | None:
    """A bucket's begin and its group."""
    if after is None:
        return None
    bucket, _, group = after.partition("|")
    moment = datetime.fromisoformat(bucket)
    if moment.tzinfo is None:
        raise ValueError("a bucket's begin and its group, as `next` has them")
    return moment, group


def _place(after: str | None) -> str | None:
    _behind(after)
    return after


@dataclass(frozen=True, kw_only=True)
class Figures(OfJobs):
    """Figures of what, and for which stretches of time."""

    bucket_s: Annotated[int, Query(ge=1, le=366 * 86_400, description="Seconds.")] = 86_400
    by: Grouping = "job"
    after: Annotated[str | None, AfterValidator(_place)] = None

    def stated(self) -> dict[str, Any]:
        return super().stated() | {"after": _behind(self.after)}


@router.get("/statistics", response_model=Page[Statistics])
def statistics(scheduler: Reading, asked: Annotated[Figures, Depends()]) -> JSONResponse:
    """Runs, failures, durations and lateness of finished occurrences, in stretches of time."""
    return asked.page(
        scheduler.statistics, place=lambda row: f"{row.bucket.isoformat()}|{row.group}"
    )
