"""Who looks at the page, and what a form must bring: its token, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qsl, quote

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from horolog.interface.scheduler import Scheduler
from horolog.interface.web.access import Caller, Refused, scheduler_for, server_of

MAX_FIELDS: Final = 200
LONGEST_REASON: Final = 2000


class LoginNeeded(Exception):
    """The page is for people with an account."""


def person(request: Request) -> Caller:
    """Who looks; raises ``LoginNeeded``."""
    caller = server_of(request).access.of_person(request)
    if caller is None:
        raise LoginNeeded
    return caller


Person = Annotated[Caller, Depends(person)]


def looking(request: Request, caller: Person) -> Scheduler:
    """The scheduler of who looks."""
    return scheduler_for(request, caller)


Looking = Annotated[Scheduler, Depends(looking)]


async def fields_of(request: Request) -> Mapping[str, str]:
    """The fields of a form, each once; those left empty are left out."""
    body = await request.body()
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "the form cannot be read") from None
    return {name: value.strip() for name, value in pairs if value.strip()}


Fields = Annotated[Mapping[str, str], Depends(fields_of)]


@dataclass(frozen=True, slots=True)
class Command:
    """A form that may change something: who sent it, why, and its fields."""

    scheduler: Scheduler
    caller: Caller
    fields: Mapping[str, str]
    reason: str

    def flag(self, name: str) -> bool:
        return self.fields.get(name) == "yes"


def command(request: Request, caller: Person, fields: Fields) -> Command:
    """Checks the form's token, the caller's role, and that there is a reason."""
    sessions = server_of(request).access.sessions
    session = caller.session
    if session is None or not sessions.is_form_token(session, fields.get("token", "")):
        raise Refused(403, "this form is no longer good: go back, load the page anew, try again")
    if not caller.may_write:
        raise Refused(403, f"account {caller.name!r} may look and change nothing")
    reason = fields.get("reason", "")
    if not reason:
        raise Refused(422, "say why: the reason is kept in the log, for those who come after")
    if len(reason) > LONGEST_REASON:
        raise Refused(422, f"a reason has at most {LONGEST_REASON} characters")
    return Command(scheduler_for(request, caller), caller, fields, reason)


Commanded = Annotated[Command, Depends(command)]


def to_login(request: Request) -> Response:
    """Where somebody without a session is sent; back here afterwards."""
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    where = f"/login?next={quote(back if request.method == 'GET' else '/', safe='')}"
    if request.headers.get("hx-request"):
        return Response(status_code=204, headers={"HX-Redirect": "/login"})
    return RedirectResponse(where, 303)


def within_here(path: str) -> str:
    """The path if it stays on this server, else the front page."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside else "/"
