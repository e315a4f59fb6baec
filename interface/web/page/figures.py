"""Lateness and throughput of the last hour, day, week or month."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from horolog.domain.errors import InvalidPolicy
from horolog.interface.web.page.asking import Looking, Person
from horolog.interface.web.page.plots import SPANS, plots
from horolog.interface.web.page.rendering import shown

router = APIRouter()


@router.get("/figures")
def figures(
    request: Request,
    caller: Person,
    scheduler: Looking,
    span: Literal["hour", "day", "week", "month"] = "hour",
    name: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The plots, and the same as a table by handler."""
    now = datetime.now(UTC)
    picture, by_name, too_many = None, [], ""
    try:
        picture = plots(scheduler, span, now, name or None)
        length = SPANS[span][0]
        bucket_s = int(length.total_seconds()) * 2
        by_name = scheduler.statistics(
            since=now - length, until=now, bucket_s=bucket_s, by="name", name=name or None
        )
    except InvalidPolicy as error:
        too_many = str(error)
    return shown(
        request,
        caller,
        "figures.html",
        view="figures",
        span=span,
        spans=tuple(SPANS),
        name=name,
        plots=picture,
        by_name=by_name,
        too_many=too_many,
    )
