"""What the routes have in common: the caller, strict parameters, pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as Dependency
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, WithJsonSchema
from starlette.responses import JSONResponse

from horolog.domain.text import is_storable
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.access import Caller, Refused, scheduler_for, server_of

T = TypeVar("T")

MAX_PAGE: Final = 1000


def caller_of(request: Request) -> Caller:
    """Who asks; raises ``Refused``."""
    return server_of(request).access.of_program(request.headers.get("authorization"))


def reading(request: Request) -> Scheduler:
    """The scheduler of whoever may look."""
    return scheduler_for(request, caller_of(request))


def writing(request: Request) -> Scheduler:
    """The scheduler of whoever may change something."""
    caller = caller_of(request)
    if not caller.may_write:
        raise Refused(403, f"account {caller.name!r} may look and change nothing")
    return scheduler_for(request, caller)


Asking = Annotated[Caller, Depends(caller_of)]
Reading = Annotated[Scheduler, Depends(reading)]
Writing = Annotated[Scheduler, Depends(writing)]


def known_parameters(request: Request) -> None:
    """Refuses a query parameter that the route does not have: a misspelt filter is no filter.

    A parameter that is given twice is refused too, since only one of them would count.
    """
    route = request.scope["route"]
    known = {field.alias for field in route.dependant.query_params}
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name, sorted(known), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise _wrong(name, f"no such parameter: {hint}" if known else "it takes none")
        if len(request.query_params.getlist(name)) > 1:
            raise _wrong(name, "it is given twice")


def _wrong(name: str, message: str) -> RequestValidationError:
    return RequestValidationError([{"loc": ("query", name), "msg": message, "type": "parameter"}])


STRICT: Final[Sequence[Dependency]] = (Depends(known_parameters),)


_READS_TIME: Final = TypeAdapter(datetime)


def _instant(value: object) -> object:
    """Text only: a number would be read as seconds since 1970, or as milliseconds."""
    if not isinstance(value, str) or value.strip().lstrip("+-").replace(".", "").isdigit():
        raise ValueError("give ISO 8601 with an offset, such as 2027-03-01T08:00:00+00:00")
    return _READS_TIME.validate_python(value)


def _aware(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("it has no offset: add one, such as +00:00 (in a URL: %2B00:00) or Z")
    return value


Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    AfterValidator(_aware),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An instant with its offset."""


def _storable(value: str) -> str:
    if not is_storable(value):
        raise ValueError("it holds NUL or a lone surrogate")
    return value


Text = Annotated[str, AfterValidator(_storable)]

After = Annotated[
    str | None,
    Query(description="Goes on behind this id: the last one of the page before."),
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="The most items of a page.")]
Number = Annotated[int, Query(ge=0, le=2**62)]


def page(
    request: Request,
    limit: int,
    fetch: Callable[[int], Iterable[T]],
    place: Callable[[T], object],
    **more: Any,
) -> JSONResponse:
    """A page of at most ``limit`` items, and a link to the next one where there is one.

    One item more than the page holds is fetched, so the last page says that it is the last.
    """
    found = list(fetch(limit + 1))
    shown = found[:limit]
    following = None
    if len(found) > limit:
        following = _link(request, {"after": str(place(shown[-1])), "limit": str(limit)})
    body = {"items": [_plain(item) for item in shown], "next": following, **more}
    headers = {} if following is None else {"Link": f'<{following}>; rel="next"'}
    return JSONResponse(body, headers=headers)


def _link(request: Request, changed: Mapping[str, str]) -> str:
    """This page's address with other parameters; without the host, which a proxy may change."""
    return f"{request.url.path}?{urlencode({**request.query_params, **changed})}"


def _plain(item: Any) -> Any:
    return item.to_dict()


def answer(
    found: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """One answer of the scheduler."""
    return JSONResponse(found.to_dict(), status, dict(headers or {}))
