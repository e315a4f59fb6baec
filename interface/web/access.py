"""Who asks, and what they may do: a bearer token for programs, a cookie for the page.

The API knows bearer tokens only, so that no browser can be made to send one; where there are no
accounts (a server on loopback) everybody is the person who started it.
"""

import threading
from collections import deque
from dataclasses import dataclass
from time import monotonic
from typing import Final

from starlette.requests import Request

from horolog.interface.scheduler import Scheduler
from horolog.interface.web.accounts import Account, Role, by_secret
from horolog.interface.web.place import Place
from horolog.interface.web.sessions import Session, Sessions
from horolog.interface.web.settings import WebSettings

TRIES: Final = 10
TRIES_S: Final = 60.0
"""So many wrong logins in so many seconds from one address; then it has to wait."""


@dataclass(frozen=True, slots=True)
class Caller:
    """``name`` is the actor of what follows. ``session`` is a browser's."""

    name: str
    role: Role
    session: Session | None = None

    @property
    def may_write(self) -> bool:
        return self.role == "write"


class Refused(Exception):
    """Who asks is not known (401), or may not do this (403)."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Access:
    """Tells callers apart by the settings of one server."""

    def __init__(self, settings: WebSettings, actor: str) -> None:
        self.settings = settings
        self.sessions = Sessions(settings)
        self.wrong_logins = WrongLogins()
        self._actor = actor
        self._by_name = {account.name: account for account in settings.accounts}

    @property
    def demanded(self) -> bool:
        """Whether anybody has to say who they are."""
        return bool(self._by_name)

    def of_program(self, authorization: str | None) -> Caller:
        """The caller of the API; raises ``Refused``."""
        if not self.demanded:
            return Caller(self._actor, self._role("write"))
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.casefold() != "bearer" or not secret.strip():
            raise Refused(401, "say who you are: Authorization: Bearer <the secret of an account>")
        account = by_secret(self.settings.accounts, secret.strip())
        if account is None:
            raise Refused(401, "no account has this token")
        return self._caller(account, None)

    def of_person(self, request: Request) -> Caller | None:
        """The caller of a page; ``None`` where they have to log in first."""
        session = self.sessions.opened(request.cookies.get(self.sessions.cookie))
        if not self.demanded:
            return Caller(self._actor, self._role("write"), session or self.sessions.begin())
        account = None if session is None else self._by_name.get(session.name or "")
        return None if account is None else self._caller(account, session)

    def _caller(self, account: Account, session: Session | None) -> Caller:
        return Caller(account.name, self._role(account.role), session)

    def _role(self, role: Role) -> Role:
        return "read" if self.settings.read_only else role


class WrongLogins:
    """Counts the wrong logins of each address of late."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = {}

    def wait_s(self, address: str) -> float:
        """How long this address has to wait before it may try again; 0 where it need not."""
        with self._lock:
            times = self._recent(address)
            return 0.0 if len(times) < TRIES else TRIES_S - (monotonic() - times[0])

    def add(self, address: str) -> None:
        with self._lock:
            if len(self._times) > 10_000:  # an attacker of many addresses takes no memory
                self._times.clear()
            self._times.setdefault(address, deque()).append(monotonic())

    def _recent(self, address: str) -> deque[float]:
        times = self._times.get(address, deque())
        while times and monotonic() - times[0] > TRIES_S:
            times.popleft()
        return times


@dataclass(frozen=True, slots=True)
class Server:
    """What the routes of one server share."""

    place: Place
    access: Access
    settings: WebSettings


def server_of(request: Request) -> Server:
    """The server that the request came to."""
    return request.app.state.server


def scheduler_for(request: Request, caller: Caller) -> Scheduler:
    """The scheduler, acting as the caller."""
    return server_of(request).place.acting_as(caller.name)
