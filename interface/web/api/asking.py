"""What the routes have in common: the caller, strict parameters, pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as Dependency
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, WithJsonSchema
from starlette.responses import JSONResponse

from horolog.domain.text import is_storable
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.access import Caller, Refused, scheduler_for, server_of

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
    known = _parameters(route.dependant)
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name, sorted(known), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise _wrong(name, f"no such parameter: {hint}" if known else "it takes none")
        if len(request.query_params.getlist(name)) > 1:
            raise _wrong(name, "it is given twice")


def _parameters(dependant: Any) -> set[str]:
    """The query parameters of a route, those of its listing among them."""
    own = {field.alias for field in dependant.query_params}
    return own.union(*(_parameters(one) for one in dependant.dependencies))


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


@dataclass(frozen=True, kw_only=True)
class Paged:
    """The parameters of a listing, as those of the scheduler's method that it asks: each field is a
    query parameter of the route and, under its own name, an argument of the method."""

    request: Request
    limit: Limit = 100

    def page(
        self,
        ask: Callable[..., Iterable[Any]],
        *fixed: object,
        place: Callable[[Any], object] = lambda item: item.id,
        **more: object,
    ) -> JSONResponse:
        """A page of at most ``limit`` items, and a link to the next one where there is one.

        ``ask`` also gets ``fixed`` and ``more``. ``place`` is what the following page is asked to
        begin behind. One item more than the page holds is fetched, so the last page says that it is
        the last.
        """
        found = list(ask(*fixed, **self.stated(), **more, limit=self.limit + 1))
        shown = found[: self.limit]
        following = None
        if len(found) > self.limit:
            goes_on = {"after": str(place(shown[-1])), "limit": str(self.limit)}
            following = _link(self.request, goes_on)
        body = {"items": [item.to_dict() for item in shown], "next": following}
        headers = {} if following is None else {"Link": f'<{following}>; rel="next"'}
        return JSONResponse(body, headers=headers)

    def stated(self) -> dict[str, Any]:
        """The arguments of the method, without the limit."""
        names = {field.name for field in fields(self)} - {"request", "limit"}
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Listing(Paged):
    """Things in the order of their ids, or of something that has one for each."""

    after: After = None


@dataclass(frozen=True, kw_only=True)
class Versions(Paged):
    """What happened to one thing; `after` is a version."""

    after: Number = 0

    def versions(self, ask: Callable[..., Iterable[Any]], identity: object) -> JSONResponse:
        """A page of what ``ask`` says of that thing, oldest first."""
        return self.page(ask, identity, place=lambda happened: happened.version)


def _link(request: Request, changed: Mapping[str, str]) -> str:
    """This page's address with other parameters; without the host, which a proxy may change."""
    return f"{request.url.path}?{urlencode({**request.query_params, **changed})}"


def answer(
    found: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """One answer of the scheduler."""
    return JSONResponse(found.to_dict(), status, dict(headers or {}))
