"""Dead letters: whose they are, one by one, and many at once after they have been counted."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from horolog.interface.scheduler import Scheduler
from horolog.interface.web.access import Caller, Refused, server_of
from horolog.interface.web.page.asking import Commanded, Looking, Person
from horolog.interface.web.page.rendering import say, shown

router = APIRouter()

PAGE = 50

Word = Annotated[str, Query(max_length=600)]


@router.get("/dead-letters")
def letters(
    request: Request,
    caller: Person,
    scheduler: Looking,
    owner: Word = "",
    name: Word = "",
    after: Word = "",
) -> Response:
    """The list."""
    return _page(request, caller, scheduler, owner, name, after)


@router.post("/dead-letters/replay")
def replay_many(request: Request, asked: Commanded) -> Response:
    """Counts them first; the second form, which says how many, replays them."""
    owner, name = asked.fields.get("owner", ""), asked.fields.get("name", "")
    limit, rate = _number(asked.fields, "limit"), _number(asked.fields, "rate")
    chosen: dict[str, Any] = {
        "owner": owner or None,
        "name": name or None,
        "limit": None if limit is None else int(limit),
    }
    if not asked.flag("sure"):
        counted = {
            **chosen,
            "rate": rate,
            "reason": asked.reason,
            "count": asked.scheduler.replay_many(**chosen, dry_run=True),
        }
        return _page(request, asked.caller, asked.scheduler, owner, name, "", counted)
    count = asked.scheduler.replay_many(**chosen, rate=rate, reason=asked.reason)
    page = RedirectResponse("/dead-letters", 303)
    say(page, f"{count} dead letters are tried again")
    return page


def _page(
    request: Request,
    caller: Caller,
    scheduler: Scheduler,
    owner: str,
    name: str,
    after: str,
    counted: dict[str, Any] | None = None,
) -> Response:
    found = scheduler.dead_letters(
        owner=owner or None, name=name or None, after=after or None, limit=PAGE + 1
    )
    store, _ = server_of(request).place.store()
    return shown(
        request,
        caller,
        "letters.html",
        view="letters",
        letters=found[:PAGE],
        following=found[PAGE - 1].id if len(found) > PAGE else None,
        depths=[] if store is None else store.dead_letters,
        owner=owner,
        name=name,
        counted=counted,
    )


def _number(fields: Any, name: str) -> float | None:
    text = fields.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise Refused(422, f"{name}: {text[:40]!r} is no number") from None
