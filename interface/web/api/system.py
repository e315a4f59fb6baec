"""The system itself: health, partitions, limits of queues, read models, zone data."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from horolog.application.answers.limited_queue import LimitedQueue
from horolog.application.answers.plain import plain
from horolog.application.answers.zone_correction import ZoneCorrection
from horolog.application.diagnosis import findings
from horolog.domain.definition import QUEUE_PATTERN
from horolog.interface.web.access import server_of
from horolog.interface.web.api.answers import (
    Event,
    Health,
    Many,
    Page,
    Partition,
    ProjectionsAnswer,
    WorkAnswer,
)
from horolog.interface.web.api.asking import (
    After,
    Asking,
    Limit,
    Listing,
    Reading,
    Versions,
    Writing,
)
from horolog.interface.web.api.bodies import ProjectionsBody, QueueBody, ReasonBody

router = APIRouter(tags=["system"])

QueueName = Annotated[str, Path(pattern=QUEUE_PATTERN)]


@router.get("/health", response_model=Health)
def health(request: Request, caller: Asking) -> JSONResponse:
    """What there is to see of Postgres and NATS, what needs attention, and what to do.

    Answers 200 also where something needs attention: `healthy` says so.
    """
    del caller  # anybody who may look
    place = server_of(request).place
    store, store_error = place.store()
    queue, queue_error = place.queue()
    found = findings(
        store, queue, store_error=str(store_error or ""), queue_error=str(queue_error or "")
    )
    return JSONResponse(
        {
            "healthy": not any(finding.needs_attention for finding in found),
            "store": plain(store),
            "queue": plain(queue),
            "findings": plain(found),
        }
    )


@router.get("/partitions", response_model=Many[Partition])
def partitions(request: Request, caller: Asking) -> JSONResponse:
    """Which partition is led by whom."""
    del caller
    return JSONResponse({"items": plain(server_of(request).place.partitions())})


@router.get("/partitions/{number}/history", response_model=Page[Event])
def history(
    request: Request,
    scheduler: Reading,
    number: Annotated[int, Path(ge=0, le=1023)],
    asked: Annotated[Versions, Depends()],
) -> JSONResponse:
    """Elections and releases of a partition, oldest first; `after` is a version."""
    if number >= len(server_of(request).place.partitions()):
        raise HTTPException(404, f"this namespace has no partition {number}")
    return asked.versions(scheduler.history, number)


@router.get("/queues", response_model=Many[LimitedQueue])
def queues(scheduler: Reading) -> JSONResponse:
    """The queues that have limits, with what is in use and what waits."""
    return JSONResponse({"items": plain(scheduler.limited_queues())})


@router.put("/queues/{queue}", response_model=Many[LimitedQueue])
def limit_queue(scheduler: Writing, queue: QueueName, body: QueueBody) -> JSONResponse:
    """Limits a queue over all machines, or frees it; answers all limited queues."""
    scheduler.limit_queue(queue, limit=body.limit, rate=body.rate)
    return JSONResponse({"items": plain(scheduler.limited_queues())})


@router.get("/projections", response_model=ProjectionsAnswer)
def projections(request: Request, caller: Asking) -> JSONResponse:
    """The read models against the log, the last rebuilds, and what this server does of that."""
    del caller
    work = server_of(request).place.work
    last = work.last
    return JSONResponse(
        {"status": work.status().to_dict(), "work": None if last is None else last.to_dict()}
    )


@router.post("/projections/verify", status_code=202, response_model=WorkAnswer)
def verify(request: Request, scheduler: Writing, body: ProjectionsBody) -> JSONResponse:
    """Begins to compare read models with the log; changes nothing in them."""
    work = server_of(request).place.work.start(
        "verify", tuple(body.names), actor=scheduler.settings.actor, reason=body.reason
    )
    return JSONResponse(work.to_dict(), 202)


@router.post("/projections/rebuild", status_code=202, response_model=WorkAnswer)
def rebuild(request: Request, scheduler: Writing, body: ProjectionsBody) -> JSONResponse:
    """Begins to build read models anew while the system runs."""
    work = server_of(request).place.work.start(
        "rebuild", tuple(body.names), actor=scheduler.settings.actor, reason=body.reason
    )
    return JSONResponse(work.to_dict(), 202)


@dataclass(frozen=True, kw_only=True)
class ZoneCorrections(Listing):
    """How much of each is told."""

    following: Annotated[int, Query(ge=1, le=100)] = 3


@router.get("/zone-corrections", response_model=Page[ZoneCorrection])
def zone_corrections(
    scheduler: Reading, asked: Annotated[ZoneCorrections, Depends()]
) -> JSONResponse:
    """The jobs whose next fire time the installed zone data moves."""
    return asked.page(scheduler.zone_corrections, place=lambda correction: correction.job_id)


@router.post("/zone-corrections", response_model=Many[ZoneCorrection])
def correct(
    scheduler: Writing, body: ReasonBody | None = None, after: After = None, limit: Limit = 100
) -> JSONResponse:
    """Corrects a page of them, and says which; until it is empty."""
    reason = None if body is None else body.reason
    found = scheduler.zone_corrections(apply=True, after=after, limit=limit, reason=reason)
    return JSONResponse({"items": [correction.to_dict() for correction in found]})
