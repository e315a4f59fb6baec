"""What went wrong, as a page: one sentence, and the way back."""

from collections.abc import Mapping

from fastapi import Request
from starlette.responses import Response

from horolog.interface.web.access import server_of
from horolog.interface.web.page.rendering import shown as rendered

_TITLES = {
    400: "That cannot be read",
    401: "Log in first",
    403: "That is not allowed",
    404: "There is no such thing",
    405: "Not in this way",
    409: "Not in this state",
    412: "Somebody else was faster",
    413: "That is too large",
    422: "That cannot be",
    429: "Too many tries",
    503: "A service is away",
}


def shown(
    request: Request, status: int, detail: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    """The page that says so. A fragment that htmx asked for shows the sentence in its place."""
    caller = server_of(request).access.of_person(request)
    fragment = request.headers.get("hx-request") is not None
    return rendered(
        request,
        caller,
        "_refused.html" if fragment else "refused.html",
        status_code=status,
        headers=headers,
        title=_TITLES.get(status, "Something failed here"),
        code=status,
        detail=detail,
    )
