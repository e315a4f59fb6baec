"""The system: partitions and their leaders on a map, read models with their lag, the log."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from horolog.domain.errors import InvalidPolicy
from horolog.domain.event import topics
from horolog.interface.web.access import server_of
from horolog.interface.web.page.asking import Looking, Person
from horolog.interface.web.page.rendering import shown

router = APIRouter()

PAGE = 100


@router.get("/partitions")
def partitions(request: Request, caller: Person) -> Response:
    """Who leads what."""
    place = server_of(request).place
    store, _ = place.store()
    places = place.partitions()
    leaders = sorted({one.instance for one in places if one.instance is not None})
    return shown(
        request,
        caller,
        "_map.html" if request.headers.get("hx-request") else "partitions.html",
        view="partitions",
        places=places,
        hues={leader: number % 8 for number, leader in enumerate(leaders)},
        store=store,
    )


@router.get("/partitions/{number}")
def partition(request: Request, caller: Person, scheduler: Looking, number: int) -> Response:
    """The elections of one."""
    version = 0
    events = scheduler.history(number, after=version, limit=1000)
    return shown(
        request,
        caller,
        "events.html",
        view="partitions",
        title=f"Partition {number}",
        events=events[::-1],
    )


@router.get("/projections")
def projections(request: Request, caller: Person) -> Response:
    """Read models against the log, and what works on them."""
    place = server_of(request).place
    store, _ = place.store()
    return shown(
        request,
        caller,
        "_projections.html" if request.headers.get("hx-request") else "projections.html",
        view="projections",
        status=place.work.status(),
        work=place.work.last,
        followers=[] if store is None else store.followers,
    )


@router.get("/log")
def log(
    request: Request,
    caller: Person,
    scheduler: Looking,
    topic: Annotated[str, Query(max_length=80)] = "",
    before: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> Response:
    """The newest events first; ``before`` a position."""
    end = before or scheduler.position() + 1
    try:
        after, events = max(0, end - 1 - PAGE), []
        # Of one topic there may be few: the stretch that is looked at grows, up to a bound.
        for _ in range(6):
            found = scheduler.log(after=after, topics=topic or None, limit=1000)
            events = [event for event in found if event.position < end][-PAGE:]
            if len(events) >= PAGE // 2 or after == 0 or not topic or len(found) == 1000:
                break
            after = max(0, end - 1 - (end - 1 - after) * 6)
    except InvalidPolicy:
        after, events = 0, []
    return shown(
        request,
        caller,
        "log.html",
        view="log",
        events=events[::-1],
        earlier=after + 1 if after > 0 else None,
        topic=topic,
        topics=sorted({*topics(), *(t.partition(".")[0] for t in topics())}),
    )
