"""Master keys: what the keys of subjects are wrapped with, and what this database never holds.

The first one wraps, all of them unwrap. To change it, put the new one before the old one
everywhere, have all keys wrapped anew (``horolog privacy rotate``), and take the old one away.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from horolog.domain.errors import InvalidSetting, NoMasterKey
from horolog.infrastructure.privacy.cipher import KEY_BYTES, CannotOpen, Cipher

SETTING = "HOROLOG_MASTER_KEY or HOROLOG_MASTER_KEY_FILE"


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A key as it is kept; ``master`` is the fingerprint of what wraps it."""

    master: str
    data: bytes


@dataclass(frozen=True)
class MasterKeys:
    """By fingerprint; ``current`` is the one that wraps. Never part of a message or a repr."""

    current: str | None = None
    _ciphers: Mapping[str, Cipher] = field(default_factory=dict[str, Cipher], repr=False)

    @classmethod
    def read(cls, text: str) -> "MasterKeys":
        """Keys as ``horolog privacy new-key`` prints them, with commas or white space between.

        Raises ``InvalidSetting``, which says which one cannot be used, and nothing of it.
        """
        ciphers: dict[str, Cipher] = {}
        for number, word in enumerate(text.replace(",", " ").split(), 1):
            key = _decoded(word)
            if key is None:
                raise InvalidSetting(
                    f"key {number} of {SETTING} is no master key: it is 32 random bytes in URL-safe"
                    " base64, as `horolog privacy new-key` prints them"
                )
            ciphers[fingerprint(key)] = Cipher(key)
        return cls(next(iter(ciphers), None), ciphers)

    def __bool__(self) -> bool:
        return self.current is not None

    @property
    def fingerprints(self) -> list[str]:
        """What tells them apart in messages and in ``horolog privacy status``; the first wraps."""
        return list(self._ciphers)

    def wrap(self, key: bytes, about: bytes) -> Wrapped:
        """Raises ``NoMasterKey`` where there is none."""
        if self.current is None:
            raise NoMasterKey(
                f"data of a subject is encrypted, and there is no master key: set {SETTING}"
                " (`horolog privacy new-key` makes one)"
            )
        return Wrapped(self.current, self._ciphers[self.current].seal(key, about))

    def unwrap(self, wrapped: Wrapped, about: bytes) -> bytes:
        """Raises ``NoMasterKey`` where the one that wraps it is not here."""
        cipher = self._ciphers.get(wrapped.master)
        if cipher is None:
            have = ", ".join(self.fingerprints) or "none"
            raise NoMasterKey(
                f"the key of a subject is wrapped with the master key {wrapped.master}, and"
                f" {SETTING} has {have}: add that one (nothing is lost)"
            )
        try:
            return cipher.open(wrapped.data, about)
        except CannotOpen:
            raise NoMasterKey(
                f"the key of a subject does not open with the master key {wrapped.master}: its row"
                " in subject_keys was changed, or copied from another namespace"
            ) from None


def new_master_key() -> str:
    """A new master key, as the setting takes it."""
    return urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()


def fingerprint(key: bytes) -> str:
    """Tells master keys apart, and says nothing about them."""
    return sha256(b"horolog master key\0" + key).hexdigest()[:16]


def _decoded(word: str) -> bytes | None:
    try:
        key = urlsafe_b64decode(word.replace("+", "-").replace("/", "_") + "=" * (-len(word) % 4))
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None
