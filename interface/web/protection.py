"""What every request meets first, and every answer carries: a wall around page and API alike.

Refused, before anything is asked: a host that is not ours (a name that was made to lead to
loopback), a change that another site's page sends (its ``Origin`` says so), a body that is too
large. Answers forbid scripts and styles that are not ours, frames, guessing of types, and caching.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from horolog.interface.web.problems import API, problem
from horolog.interface.web.settings import WebSettings

MAX_BODY: Final = 8 * 1024 * 1024
"""Bytes; a thousand jobs with payloads of some kilobytes."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_HSTS: Final = {"Strict-Transport-Security": "max-age=31536000"}


class Protection:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._names = settings.known_names
        self._headers: Mapping[str, str] = _HEADERS | (_HSTS if settings.secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                # Our own files are asked for again by their tags; answers about jobs are not kept.
                static = scope["path"].startswith("/static/")
                headers.setdefault("Cache-Control", "no-cache" if static else "no-store")
            await send(message)

        refused = self._refusal(Request(scope))
        if refused is not None:
            await refused(scope, receive, sent)
            return
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY:  # sent in pieces, without its length
                raise HTTPException(413, f"a body has at most {MAX_BODY} bytes")
            return message

        await self._app(scope, bounded, sent)

    def _refusal(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or _name(hosts[0]) not in self._names:
            given = ", ".join(hosts)[:200] or "no host"
            return _refused(
                request,
                421,
                "misdirected",
                f"this server is not {given!r}: use one of its names, or state that one (--name)",
            )
        if request.method in _SAFE:
            return None
        if not _from_here(request.headers, hosts[0]):
            return _refused(
                request, 403, "cross-origin", "a page of another site may not change anything here"
            )
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > MAX_BODY:
            return _refused(
                request, 413, "too-large", f"a body has at most {MAX_BODY} bytes; this has {length}"
            )
        if request.url.path.startswith(API) and not _is_json(request.headers):
            return _refused(
                request,
                415,
                "unsupported-media-type",
                "a body is sent as Content-Type: application/json",
            )
        return None


def _is_json(headers: Headers) -> bool:
    """Whether there is no body, or one that no form of another site could send."""
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return True
    kind = headers.get("content-type", "").partition(";")[0].strip().casefold()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


def _name(host: str) -> str:
    """The name in a ``Host`` header, without its port."""
    host = host.strip().casefold()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _from_here(headers: Headers, host: str) -> bool:
    """Whether a page of ours sent it, or no page at all: a browser always says which."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.casefold() != host.strip().casefold():
        return False
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def _refused(request: Request, status: int, kind: str, detail: str) -> Response:
    if request.url.path.startswith(API):
        return problem(status, kind, detail)
    return PlainTextResponse(detail, status)
