"""Signed cookies: who is logged in at a browser, and the token that its forms carry.

Nothing is kept on the server. A cookie names a session and a person and is signed; the token of a
form is a signature of the session: a form of another site, which cannot read it, changes nothing.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from time import time
from typing import Any, cast

from horolog.interface.web.settings import WebSettings


@dataclass(frozen=True, slots=True)
class Session:
    """``name`` is the account's, ``None`` of a browser that has not logged in."""

    id: str
    name: str | None


class Sessions:
    """Makes and reads the cookies of one server (or of several with one secret)."""

    def __init__(self, settings: WebSettings) -> None:
        self._key = settings.secret.encode()
        self._lasts_s = settings.session_s
        # A browser sends a __Host- cookie only to the host that set it, and only by TLS.
        self.cookie = "__Host-horolog" if settings.secure else "horolog"

    def begin(self, name: str | None = None) -> Session:
        return Session(secrets.token_urlsafe(18), name)

    def sealed(self, session: Session) -> str:
        """The cookie's value."""
        said = json.dumps([session.id, session.name, int(time() + self._lasts_s)])
        body = base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")
        return f"{body}.{self._signature('session', body)}"

    def opened(self, cookie: str | None) -> Session | None:
        """The session, unless the cookie is not ours or has run out."""
        body, dot, signature = (cookie or "").partition(".")
        if not dot or not _same(signature, self._signature("session", body)):
            return None
        try:
            padded = body + "=" * (-len(body) % 4)
            said = cast("list[Any]", json.loads(base64.urlsafe_b64decode(padded)))
        except (binascii.Error, ValueError):
            return None
        identity, name, ends = said
        return Session(identity, name) if time() < ends else None

    def form_token(self, session: Session) -> str:
        return self._signature("form", f"{session.id} {session.name or ''}")

    def is_form_token(self, session: Session, token: str) -> bool:
        return _same(token, self.form_token(session))

    def _signature(self, purpose: str, said: str) -> str:
        made = hmac.new(self._key, f"{purpose} {said}".encode(), hashlib.sha256)
        return made.hexdigest()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())
