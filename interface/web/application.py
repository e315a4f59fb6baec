"""The application: page, API and static files behind one wall, with every refusal an answer."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from horolog.domain.errors import HorologError, StoreUnavailable, UnreadableEvent
from horolog.interface.settings import Settings
from horolog.interface.web.access import Access, Refused, Server
from horolog.interface.web.api import routes
from horolog.interface.web.page import refusals
from horolog.interface.web.page.asking import LoginNeeded, to_login
from horolog.interface.web.page.routes import router as page_routes
from horolog.interface.web.place import Place
from horolog.interface.web.problems import API, problem, problem_of
from horolog.interface.web.protection import Protection
from horolog.interface.web.settings import WebSettings

STATIC: Final = Path(__file__).parent / "static"

_log = logging.getLogger("horolog.web")

_KINDS: Final = {
    400: "unreadable",
    401: "unknown-caller",
    403: "forbidden",
    404: "unknown-address",
    405: "unknown-method",
    413: "too-large",
    415: "unsupported-media-type",
}


def build(settings: Settings, web: WebSettings) -> FastAPI:
    """The application; it connects with its first request."""
    place = Place(settings)
    server = Server(place, Access(web, settings.actor), web)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        place.close()

    app = FastAPI(
        openapi_url=f"{routes.PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.server = server
    app.include_router(routes.router)
    app.include_router(page_routes)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    for error, handler in _HANDLERS.items():
        app.add_exception_handler(error, handler)
    app.openapi = lambda: described(server.access.demanded)
    return app


def protected(app: FastAPI) -> ASGIApp:
    """The application behind its wall: what a server serves."""
    return Protection(app, app.state.server.settings)


@lru_cache
def described(demanded: bool) -> dict[str, Any]:
    """The OpenAPI document, made once; ``demanded``: whether the server has accounts."""
    document = get_openapi(
        title="Horolog",
        version=version("horolog"),
        description=routes.DESCRIPTION,
        routes=routes.router.routes,
    )
    document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    if demanded:
        document["security"] = [{"bearer": []}]
    schemas = document["components"]["schemas"]
    # FastAPI's own form of a wrong parameter is not what this API answers.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    # An answer has a schedule in its compact form: its kind, and what is not the default.
    for name in ("Once", "Every", "Cron", "Calendar", "Union"):
        schemas.pop(name, None)
    schemas["Job"]["properties"]["schedule"] = {
        "type": "object",
        "properties": {"kind": {"enum": ["once", "every", "cron", "calendar", "union"]}},
        "required": ["kind"],
    }
    return document


async def _horolog(request: Request, error: Exception) -> Response:
    assert isinstance(error, HorologError)
    if isinstance(error, StoreUnavailable | UnreadableEvent):
        _log.warning("%s %s: %s", request.method, request.url.path, error)
    refusal = problem_of(error)
    if request.url.path.startswith(API):
        return refusal
    return refusals.shown(request, refusal.status_code, str(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(API):
        kind = _KINDS.get(error.status_code, "refused")
        headers = error.headers
        if error.status_code == 405:  # each route knows only its own methods
            headers = {"Allow": ", ".join(_methods_of(request))}
        return problem(error.status_code, kind, str(error.detail), headers=headers)
    return refusals.shown(request, error.status_code, str(error.detail), headers=error.headers)


def _methods_of(request: Request) -> list[str]:
    """The methods of this path; a path that is stated as it is has none of those with a parameter:
    what may be done to `/jobs/apply` is not what may be done to a job."""
    stated = request.app.openapi()["paths"]
    found: set[str] = set(stated.get(request.url.path, ()))
    for path, methods in () if found else stated.items():
        if compile_path(path)[0].match(request.url.path):
            found |= set(methods)
    return sorted(method.upper() for method in found)


async def _wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [
        {
            "at": ".".join(str(part) for part in one["loc"]),
            "message": str(one["msg"]).removeprefix("Value error, "),
        }
        for one in error.errors()[:20]
    ]
    detail = "; ".join(f"{one['at']}: {one['message']}" for one in wrong[:3])
    unreadable = any(one["type"] == "json_invalid" for one in error.errors())
    if request.url.path.startswith(API):
        status, kind = (400, "unreadable") if unreadable else (422, "invalid-request")
        return problem(status, kind, detail, errors=wrong)
    return refusals.shown(request, 422, detail)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    if request.url.path.startswith(API):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
        return problem(error.status, _KINDS[error.status], error.detail, headers=headers)
    return refusals.shown(request, error.status, error.detail)


async def _login(request: Request, error: Exception) -> Response:
    assert isinstance(error, LoginNeeded)
    return to_login(request)


async def _fault(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    detail = "this is a fault of the server; its log says more"
    if request.url.path.startswith(API):
        return problem(500, "fault", detail)
    return refusals.shown(request, 500, detail)


_HANDLERS: Final[dict[type[Exception], Any]] = {
    HorologError: _horolog,
    HTTPException: _http,
    RequestValidationError: _wrong_request,
    Refused: _refused,
    LoginNeeded: _login,
    Exception: _fault,
}
