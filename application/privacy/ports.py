"""What sealing asks of its surroundings: a key for each subject, and a word when one is destroyed.

A client seals payloads before they reach the log, a worker opens them just before the handler and
seals what the handler returns or raises. Between them, in the log, in the ready queue and in every
read model, there is cipher text.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from horolog.domain.errors import NoMasterKey
from horolog.domain.sealed import Token


@dataclass(frozen=True, slots=True)
class Opened:
    """A value that was opened. ``seal`` seals another of the same subject, for a place of its own;
    it needs nothing from outside, so an outcome is sealed even if the subject is forgotten
    meanwhile (and then can be read by nobody)."""

    value: Any
    seal: Callable[[UUID, Any], Token]


class SealsForSubjects(Protocol):
    """Errors: ``StoreUnavailable``; ``NoMasterKey`` where the subject's key cannot be unwrapped."""

    def seal(self, subject: str, place: UUID, value: Any) -> Token:
        """Seals a JSON value for the stream ``place``; a subject's first value makes its key.

        Raises ``SubjectForgotten``.
        """
        ...


class OpensSealed(Protocol):
    """Errors: ``StoreUnavailable``; ``NoMasterKey``; ``InvalidPayload`` for what is no cipher text
    of that key, place and namespace. Keys are kept for some seconds at most."""

    @property
    def has_master_key(self) -> bool:
        """Whether there is any chance that it can open anything."""
        ...

    def open(self, token: Token) -> Opened | None:
        """The value; ``None`` where it is erased: its subject was forgotten."""
        ...

    def drop(self, keys: Collection[UUID] | None = None) -> None:
        """Forgets what is kept of these keys, or of all, at once."""
        ...


class KnowsErased(Protocol):
    """Errors: ``StoreUnavailable``. Needs no master key."""

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:
        """Which of these keys are destroyed: what is sealed with them is erased."""
        ...


class Keyring(SealsForSubjects, OpensSealed, KnowsErased, Protocol):
    """All of it, for clients."""


class NoKeyring:
    """For surroundings without keys: refuses to seal and to open, and knows of nothing erased."""

    has_master_key = False

    def seal(self, subject: str, place: UUID, value: Any) -> Token:  # noqa: ARG002
        raise NoMasterKey(_MISSING)

    def open(self, token: Token) -> Opened | None:  # noqa: ARG002
        raise NoMasterKey(_MISSING)

    def drop(self, keys: Collection[UUID] | None = None) -> None:  # noqa: ARG002
        return

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:  # noqa: ARG002
        return frozenset()


_MISSING = (
    "data of a subject is encrypted, and here are no keys: register it with a client that has"
    " HOROLOG_MASTER_KEY, and without connection="
)
