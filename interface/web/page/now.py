"""The front page: what needs attention, what is due next, what runs."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from horolog.application.diagnosis import findings
from horolog.application.health import QueueHealth, StoreHealth
from horolog.domain.errors import HorologError
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.access import Server, server_of
from horolog.interface.web.page.asking import Looking, Person
from horolog.interface.web.page.rendering import shown
from horolog.interface.web.page.timeline import timeline

router = APIRouter()

LIVE = 40

Span = Annotated[Literal["hour", "day"], Query()]


@router.get("/")
def front(request: Request, caller: Person, scheduler: Looking, span: Span = "hour") -> Response:
    """All of it."""
    return shown(
        request,
        caller,
        "now.html",
        view="now",
        span=span,
        line=_line(scheduler, span),
        **_live(server_of(request), scheduler),
    )


@router.get("/parts/due")
def due(request: Request, caller: Person, scheduler: Looking, span: Span = "hour") -> Response:
    """The time line alone, as it is now."""
    return shown(request, caller, "_due.html", span=span, line=_line(scheduler, span))


@router.get("/parts/live")
def live(request: Request, caller: Person, scheduler: Looking) -> Response:
    """What runs and what needs attention, as it is now."""
    return shown(request, caller, "_live.html", **_live(server_of(request), scheduler))


def _line(scheduler: Scheduler, span: str) -> Any:
    hours, columns = (1, 60) if span == "hour" else (24, 96)
    return timeline(scheduler, datetime.now(UTC), timedelta(hours=hours), columns)


def _live(server: Server, scheduler: Scheduler) -> dict[str, Any]:
    store, store_error = server.place.store()
    queue, queue_error = server.place.queue()
    runs = [
        run
        for state in ("running", "stopping", "claimed", "retrying")
        for run in scheduler.occurrences(state=state, limit=LIVE)
    ][:LIVE]
    names = {run.job_id: _name(scheduler, run.job_id) for run in runs}
    return {
        "store": store,
        "queue": queue,
        "problems": _problems(store, store_error, queue, queue_error),
        "runs": runs,
        "names": names,
        "waiting": _waiting(queue),
    }


def _name(scheduler: Scheduler, job_id: Any) -> str:
    job = scheduler.job(job_id)
    return job.key or job.name


def _problems(
    store: StoreHealth | None,
    store_error: HorologError | None,
    queue: QueueHealth | None,
    queue_error: HorologError | None,
) -> list[Any]:
    found = findings(
        store, queue, store_error=str(store_error or ""), queue_error=str(queue_error or "")
    )
    return [finding for finding in found if finding.needs_attention]


def _waiting(queue: QueueHealth | None) -> int:
    return 0 if queue is None else sum(one.waiting for one in queue.queues)
