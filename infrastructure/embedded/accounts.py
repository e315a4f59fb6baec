"""Under which user the servers run.

Postgres refuses to run as root, and a queue has no business being root either. So an ordinary user
runs both under their own name, and root runs them as whoever owns the home: when that is root
itself, as ``nobody``. Two homes of root therefore share a user with each other and with whatever
else runs as ``nobody``; root who wants more should hand over a home that a user of its own owns.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from horolog.infrastructure.embedded.failures import EmbeddedHomeFailed


class ProcessOwner(TypedDict, total=False):
    """The arguments of :class:`subprocess.Popen` that give a process its user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user, by number."""

    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        """Whether this process runs under the account."""
        return self.uid == os.geteuid()

    def owning(self) -> ProcessOwner:
        """What makes a new process belong to the account; nothing where it does anyway."""
        if self.is_ours:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def give(self, path: Path | int) -> None:
        """Make the account the owner of a path (a link itself, not what it leads to) or an open
        file; only root can, and only root needs to.
        """
        if self.is_ours:
            return
        if isinstance(path, int):
            os.fchown(path, self.uid, self.gid)
        else:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def ourselves() -> Account:
    """The account of this process."""
    return Account(os.geteuid(), os.getegid())


def owner_of(path: Path) -> Account:
    """The account that root acts for in ``path``; an ordinary user acts for nobody else."""
    if os.geteuid() != 0:
        return ourselves()
    status = path.stat()
    return Account(status.st_uid, status.st_gid)


def account_for_servers(owner: Account) -> Account:
    """The account under which the servers of a home of ``owner`` run; never root."""
    if owner.uid != 0:
        return owner
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedHomeFailed(
            "Postgres refuses to run as root, and there is no user `nobody` to run it as: "
            "give the home (HOROLOG_HOME) to an ordinary user with chown, or run as one"
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)
