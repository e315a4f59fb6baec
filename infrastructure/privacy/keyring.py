"""The keys of subjects: read, unwrapped, kept for a moment, and dropped when one is destroyed.

At most ``most`` keys are kept, none for longer than ``keep_s``: whoever does not hear that a
subject was forgotten (a listener that is cut off, a client, which has none) finds it out by then. A
process that hears it drops the key at once. Sealing for a job that can fire is checked once more,
against the table, in the transaction that appends it.
"""

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from time import monotonic as system_monotonic
from typing import Any, Final, Protocol
from uuid import UUID

from horolog.application.privacy.ports import Opened
from horolog.domain.errors import InvalidPayload, SubjectForgotten
from horolog.domain.sealed import Token
from horolog.infrastructure.privacy.cipher import KEY_BYTES, CannotOpen, Cipher
from horolog.infrastructure.privacy.master_keys import MasterKeys, Wrapped

KEEP_S: Final = 5.0
MOST: Final = 1_024
_MOST_ERASED: Final = 100_000


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """A subject's row; ``wrapped`` is ``None`` once it is forgotten."""

    subject: str
    id: UUID
    wrapped: Wrapped | None


class KeepsSubjectKeys(Protocol):
    """Errors: ``StoreUnavailable``."""

    def of_subject(self, subject: str) -> SubjectKey | None: ...

    def of_id(self, key: UUID) -> SubjectKey | None: ...

    def make(self, key: SubjectKey) -> SubjectKey:
        """Keeps this key, unless the subject has a row: the row that it has afterwards."""
        ...

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:
        """Which of these belong to forgotten subjects."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    id: UUID
    subject: str
    cipher: Cipher
    until: float


class CachedKeyring:
    """As :class:`horolog.application.privacy.ports.Keyring` promises; shared by threads.

    ``masters`` is asked once, when it is first needed.
    """

    def __init__(
        self,
        store: KeepsSubjectKeys,
        masters: Callable[[], MasterKeys],
        namespace: str,
        *,
        most: int = MOST,
        keep_s: float = KEEP_S,
        monotonic: Callable[[], float] = system_monotonic,
    ) -> None:
        self._store = store
        self._read_masters = masters
        self._namespace = namespace
        self._most = most
        self._keep_s = keep_s
        self._monotonic = monotonic
        self._lock = Lock()
        self._kept: OrderedDict[UUID, _Kept] = OrderedDict()
        self._by_subject: dict[str, UUID] = {}
        self._erased: set[UUID] = set()
        self._drops = 0

    @cached_property
    def _masters(self) -> MasterKeys:
        return self._read_masters()

    @property
    def has_master_key(self) -> bool:
        return bool(self._masters)

    def seal(self, subject: str, place: UUID, value: Any) -> Token:
        kept = self._found(self._by_subject.get(subject)) or self._of_subject(subject)
        return _seal(kept.cipher, self._namespace, kept.id, place, value)

    def open(self, token: Token) -> Opened | None:
        kept = self._found(token.key) or self._of_id(token.key)
        if kept is None:
            return None
        about = _about(self._namespace, token.key, token.place)
        try:
            data = kept.cipher.open(
                urlsafe_b64decode(token.data + "=" * (-len(token.data) % 4)), about
            )
            value = json.loads(data)
        except (CannotOpen, ValueError):
            raise InvalidPayload(
                "a sealed value does not open with its key: it was changed, or sealed for another"
                f" place than {token.place}"
            ) from None
        return Opened(value, partial(_seal, kept.cipher, self._namespace, kept.id))

    def drop(self, keys: Collection[UUID] | None = None) -> None:
        with self._lock:
            # Whoever reads a row just now must not keep what it read before the row changed.
            self._drops += 1
            for key in list(self._kept) if keys is None else keys:
                if (kept := self._kept.pop(key, None)) is not None:
                    del self._by_subject[kept.subject]

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:
        # What is erased stays erased, so that is kept; what is not is asked for each time.
        known = self._erased.intersection(keys)
        unknown = [key for key in keys if key not in known]
        found = self._store.erased(unknown) if unknown else frozenset[UUID]()
        if len(self._erased) + len(found) > _MOST_ERASED:
            self._erased.clear()
        self._erased |= found
        return found | known

    def _of_subject(self, subject: str) -> _Kept:
        """Reads the key of a subject, and makes it where there is none."""
        drops = self._drops
        row = self._store.of_subject(subject)
        if row is None:
            identity, key = UUID(bytes=os.urandom(16), version=4), os.urandom(KEY_BYTES)
            wrapped = self._masters.wrap(key, about_key(self._namespace, subject, identity))
            row = self._store.make(SubjectKey(subject, identity, wrapped))
        kept = self._unwrapped(row, drops)
        if kept is None:
            raise SubjectForgotten(
                f"subject {subject!r} was forgotten: no job can carry data of it again"
            )
        return kept

    def _of_id(self, key: UUID) -> _Kept | None:
        drops = self._drops
        row = self._store.of_id(key)
        if row is None:
            raise InvalidPayload(f"a sealed value has the key {key}, which is not in subject_keys")
        return self._unwrapped(row, drops)

    def _unwrapped(self, row: SubjectKey, drops: int) -> _Kept | None:
        if row.wrapped is None:
            return None
        about = about_key(self._namespace, row.subject, row.id)
        cipher = Cipher(self._masters.unwrap(row.wrapped, about))
        kept = _Kept(row.id, row.subject, cipher, self._monotonic() + self._keep_s)
        with self._lock:
            if drops == self._drops:
                self._kept[row.id] = kept
                self._by_subject[row.subject] = row.id
                while len(self._kept) > self._most:
                    _, oldest = self._kept.popitem(last=False)
                    self._by_subject.pop(oldest.subject, None)
        return kept

    def _found(self, key: UUID | None) -> _Kept | None:
        with self._lock:
            kept = None if key is None else self._kept.get(key)
            return None if kept is None or kept.until <= self._monotonic() else kept


def _seal(cipher: Cipher, namespace: str, key: UUID, place: UUID, value: Any) -> Token:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    sealed = cipher.seal(data, _about(namespace, key, place))
    return Token(key, place, urlsafe_b64encode(sealed).decode().rstrip("="))


def _about(namespace: str, key: UUID, place: UUID) -> bytes:
    return b"value\0" + namespace.encode() + key.bytes + place.bytes


def about_key(namespace: str, subject: str, key: UUID) -> bytes:
    return b"key\0" + namespace.encode() + key.bytes + subject.encode()
