"""AES-256-GCM, bound to what is said about the value: moved elsewhere, it does not open.

The ``eventsourcing`` library has a cipher too, for whole states. It knows nothing of what a cipher
text belongs to, and a whole state that cannot be read cannot be folded; so only the values are
sealed here, and the events stay readable.
"""

import os
from typing import Final

from horolog.domain.errors import InvalidSetting

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class CannotOpen(Exception):
    """What is to be opened was not sealed with this key, or not about this."""


class Cipher:
    """One key. Safe to share between threads."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise InvalidSetting(
                "the data of a subject is encrypted, and the package `cryptography` is not"
                " installed: pip install 'horolog[privacy]'"
            ) from None
        self._gcm = AESGCM(key)

    def __repr__(self) -> str:
        return "<Cipher>"

    def seal(self, data: bytes, about: bytes) -> bytes:
        """A random nonce, the cipher text and its tag."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._gcm.encrypt(nonce, data, about)

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """Raises ``CannotOpen``."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) < _NONCE_BYTES:
            raise CannotOpen
        try:
            return self._gcm.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about)
        except InvalidTag:
            raise CannotOpen from None
