"""Logging in and out, where the server has accounts: name and secret, and then a signed cookie."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from horolog.interface.web.access import Refused, server_of
from horolog.interface.web.accounts import by_name_and_secret
from horolog.interface.web.page.asking import Fields, Person, within_here
from horolog.interface.web.page.rendering import keep_session, shown

router = APIRouter()


@router.get("/login")
def ask(
    request: Request,
    back: Annotated[str, Query(alias="next", max_length=2000)] = "/",
) -> Response:
    """The form."""
    access = server_of(request).access
    if access.of_person(request) is not None:
        return RedirectResponse(within_here(back), 303)
    return shown(request, None, "login.html", next=within_here(back), wrong="")


@router.post("/login")
def log_in(request: Request, fields: Fields) -> Response:
    """Begins a session, or says that name or secret is wrong (not which)."""
    access = server_of(request).access
    address = request.client.host if request.client is not None else ""
    back = within_here(fields.get("next", "/"))
    wait_s = access.wrong_logins.wait_s(address)
    if wait_s > 0:
        return shown(
            request,
            None,
            "login.html",
            status_code=429,
            headers={"Retry-After": str(int(wait_s) + 1)},
            next=back,
            wrong=f"too many tries: wait {int(wait_s) + 1} s",
        )
    account = by_name_and_secret(
        access.settings.accounts, fields.get("name", ""), fields.get("secret", "")
    )
    if account is None:
        access.wrong_logins.add(address)
        return shown(
            request, None, "login.html", status_code=401, next=back, wrong="no account has these"
        )
    page = RedirectResponse(back, 303)
    keep_session(request, page, access.sessions.sealed(access.sessions.begin(account.name)))
    return page


@router.post("/logout")
def log_out(request: Request, caller: Person, fields: Fields) -> Response:
    """Forgets the session in this browser."""
    sessions = server_of(request).access.sessions
    if caller.session is None or not sessions.is_form_token(
        caller.session, fields.get("token", "")
    ):
        raise Refused(403, "this form is no longer good: load the page anew")
    page = RedirectResponse("/login", 303)
    page.delete_cookie(sessions.cookie, secure=server_of(request).settings.secure, httponly=True)
    return page
