"""Templates, and how values are written in them: everything that users wrote is escaped."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from horolog.application.answers.plain import plain
from horolog.application.answers.schedule_words import schedule_words
from horolog.interface.web.access import Caller, server_of

TEMPLATES: Final = Path(__file__).parent.parent / "templates"
SAID: Final = "horolog_said"
"""The cookie that carries a sentence over a redirect."""

_VIEWS: Final = (
    ("now", "/", "Now", "n"),
    ("jobs", "/jobs", "Jobs", "j"),
    ("runs", "/runs", "Runs", "r"),
    ("figures", "/figures", "Figures", "f"),
    ("letters", "/dead-letters", "Dead letters", "d"),
    ("partitions", "/partitions", "Partitions", "p"),
    ("projections", "/projections", "Projections", "m"),
    ("past", "/past", "Time travel", "t"),
    ("log", "/log", "Log", "l"),
)


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """ "in 4 min", "3 h ago"."""
    if moment is None:
        return ""
    seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    words = seconds_words(abs(seconds))
    if abs(seconds) < 1:
        return "now"
    return f"in {words}" if seconds > 0 else f"{words} ago"


def seconds_words(seconds: float | None) -> str:
    """A duration in the unit that fits: "12 ms", "4.2 s", "3 min", "5 h", "12 d"."""
    if seconds is None:
        return ""
    sign, size = ("−" if seconds < 0 else ""), abs(seconds)
    if size < 0.001:
        return "< 1 ms"
    for limit, unit, divisor in (
        (1, "ms", 0.001),
        (60, "s", 1.0),
        (3600, "min", 60.0),
        (172_800, "h", 3600.0),
    ):
        if size < limit:
            value = size / divisor
            exact = unit != "ms" and value < 10 and not value.is_integer()
            return f"{sign}{value:.1f} {unit}" if exact else f"{sign}{value:.0f} {unit}"
    return f"{sign}{size / 86_400:.0f} d"


def when(moment: datetime | None) -> Markup:
    """An instant in UTC, to the second, with the whole of it for machines and on hovering."""
    if moment is None:
        return Markup("")
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc.isoformat(),
        f"{utc.isoformat(timespec='milliseconds')} · {ago(utc)}",
        utc.strftime("%Y-%m-%d %H:%M:%S"),
    )


def clock(moment: datetime | None) -> Markup:
    """The time of day, for tables of one day."""
    if moment is None:
        return Markup("")
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc.isoformat(),
        f"{utc.isoformat(timespec='milliseconds')} · {ago(utc)}",
        utc.strftime("%H:%M:%S"),
    )


def as_json(value: object) -> str:
    return json.dumps(plain(value), ensure_ascii=False, indent=2)


def compact(value: object) -> str:
    """A value on a line."""
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def words_of(schedule: Any) -> str:
    return schedule_words(schedule.to_json())


def short(identity: object) -> str:
    """The part of an id that tells it apart."""
    return str(identity)[-8:]


def number(value: float) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def quoted(value: object) -> str:
    """For a place in an address."""
    return quote(str(value), safe="")


def time_of_day(seconds: float) -> str:
    """Of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M")


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        ago=ago,
        when=when,
        clock=clock,
        seconds=seconds_words,
        json=as_json,
        compact=compact,
        schedule=words_of,
        short=short,
        number=number,
        moment=time_of_day,
        path=quoted,
    )
    return made


_TEMPLATES: Final = _environment()


def shown(
    request: Request,
    caller: Caller | None,
    template: str,
    *,
    view: str = "",
    status_code: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """The page; with the cookie of a session that has just begun."""
    server = server_of(request)
    sessions = server.access.sessions
    session = None if caller is None else caller.session
    said = request.cookies.get(SAID)
    text = _TEMPLATES.get_template(template).render(
        view=view,
        views=_VIEWS if caller is not None else (),
        caller=caller,
        may_write=caller is not None and caller.may_write,
        logged_in=caller is not None and server.access.demanded,
        token="" if session is None else sessions.form_token(session),
        namespace=server.place.settings.namespace,
        now=datetime.now(UTC),
        said=_read_said(said),
        here=request.url.path,
        query=request.query_params,
        **values,
    )
    page = HTMLResponse(text, status_code, dict(headers or {}))
    if session is not None and request.cookies.get(sessions.cookie) is None:
        keep_session(request, page, sessions.sealed(session))
    if said is not None and not request.headers.get("hx-request"):
        page.delete_cookie(SAID)
    return page


def keep_session(request: Request, page: Any, sealed: str) -> None:
    """Sets the cookie: out of reach of scripts, and never sent from another site."""
    settings, sessions = server_of(request).settings, server_of(request).access.sessions
    page.set_cookie(
        sessions.cookie,
        sealed,
        max_age=int(settings.session_s),
        httponly=True,
        secure=settings.secure,
        samesite="lax",
        path="/",
    )


def say(page: Any, sentence: str, *, bad: bool = False) -> None:
    """Has the next page say this at its top."""
    kind = "bad" if bad else "good"
    page.set_cookie(
        SAID,
        quote(f"{kind} {sentence[:800]}", safe=""),
        max_age=30,
        httponly=True,
        samesite="strict",
    )


def _read_said(cookie: str | None) -> tuple[str, str] | None:
    from urllib.parse import unquote

    kind, _, sentence = unquote(cookie or "").partition(" ")
    return (kind, sentence) if sentence and kind in ("good", "bad") else None
