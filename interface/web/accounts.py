"""Accounts: who may ask, by a secret, and who may also change something.

A file has one account a line: its role (``read`` or ``write``), its name, its secret. The name is
the actor of the events that follow from what it asks. A secret is text of at least 16 characters,
or ``sha256:`` and the digest of one, so that the file itself opens nothing. To a program the secret
is a bearer token; a person types name and secret into the page.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Final, Literal, get_args

from horolog.domain.errors import InvalidSetting
from horolog.domain.text import is_storable

Role = Literal["read", "write"]

SHORTEST_SECRET: Final = 16
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_EXAMPLE = "`write ann 3vR9…` (role, name, secret)"


@dataclass(frozen=True, slots=True)
class Account:
    """``digest`` is SHA-256 of the secret: random text of some length needs no slower one."""

    name: str
    role: Role
    digest: bytes

    @classmethod
    def of(cls, role: str, name: str, secret: str, *, where: str) -> "Account":
        """Raises ``InvalidSetting``, which never shows the secret."""
        if role not in get_args(Role):
            raise InvalidSetting(f"{where}: role {role!r} is none: there are read and write")
        if not 0 < len(name) <= 128 or not is_storable(name) or not name.isprintable():
            raise InvalidSetting(f"{where}: an account's name has 1 to 128 printable characters")
        stored = _DIGEST.fullmatch(secret)
        if stored is not None:
            return cls(name, "read" if role == "read" else "write", bytes.fromhex(stored[1]))
        if len(secret) < SHORTEST_SECRET:
            raise InvalidSetting(
                f"{where}: the secret of {name!r} is shorter than {SHORTEST_SECRET} characters:"
                " make one with `openssl rand -base64 24`"
            )
        return cls(name, "read" if role == "read" else "write", digest_of(secret))


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def read_accounts(path: Path) -> tuple[Account, ...]:
    """The accounts of a file; raises ``InvalidSetting`` with the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"HOROLOG_WEB_ACCOUNTS: {path} cannot be read: {error}") from None
    accounts: list[Account] = []
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        if len(parts) > 3 and parts[3].startswith("#"):
            del parts[3:]  # a remark; a secret may begin with the sign
        where = f"{path}, line {number}"
        if len(parts) != 3:
            raise InvalidSetting(f"{where} has {len(parts)} words: write {_EXAMPLE}")
        account = Account.of(*parts, where=where)
        if any(account.name == other.name for other in accounts):
            raise InvalidSetting(f"{where}: there is an account {account.name!r} already")
        accounts.append(account)
    if not accounts:
        raise InvalidSetting(f"{path} holds no account: write {_EXAMPLE} on a line")
    return tuple(accounts)


def by_secret(accounts: Sequence[Account], secret: str) -> Account | None:
    """Whose secret it is. All are compared, in a time that says nothing about how near it came."""
    digest = digest_of(secret)
    found: Account | None = None
    for account in accounts:
        if compare_digest(account.digest, digest):
            found = account
    return found


def by_name_and_secret(accounts: Sequence[Account], name: str, secret: str) -> Account | None:
    """The account, if both are right."""
    found = by_secret(accounts, secret)
    if found is None or not compare_digest(found.name.encode(), name.encode("utf-8", "replace")):
        return None
    return found
