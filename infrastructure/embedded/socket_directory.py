"""A directory for Postgres's socket: private, and short enough.

The system allows 107 bytes for the path of a socket (103 outside Linux), and a home may be deeper
than that; or its path has a comma, at which libpq cuts. Then the socket goes to a directory of the
server's own under the temporary directory, which the home remembers, so that the URL stays the
same; after a reboot has emptied the temporary directory the same name is made again, unless
somebody else was quicker.

A socket keeps everybody out but the owner and root by the rights of its directory, which is why it
needs no password and why TCP is not offered: on loopback every user of the machine could knock.
"""

import os
import secrets
import socket
import sys
import tempfile
from pathlib import Path

from horolog.infrastructure.embedded.accounts import Account
from horolog.infrastructure.embedded.failures import EmbeddedPostgresFailed

SOCKET = ".s.PGSQL.5432"
LONGEST_PATH_BYTES = 107 if sys.platform == "linux" else 103


def socket_directory(at_home: Path, *, remembered: Path | None, account: Account) -> Path:
    """The directory to use: ``at_home`` if it can be, else one that was or is made elsewhere.

    ``at_home`` exists already and belongs to ``account``.
    """
    if _fits(at_home) and _takes_sockets(at_home):
        return at_home
    if remembered is not None and remembered != at_home and _ours(remembered, account):
        return remembered
    for parent in _temporary_directories():
        directory = parent / f"horolog-{secrets.token_hex(5)}"
        if _fits(directory) and _open_to(parent, account) and _ours(directory, account):
            return directory
    raise EmbeddedPostgresFailed(
        f"no directory can hold Postgres's socket: {at_home} is too long a path (a socket's may "
        f"have {LONGEST_PATH_BYTES} bytes), or has a comma, or its file system has no sockets; "
        "and no temporary directory would do: choose a shorter HOROLOG_HOME"
    )


def _temporary_directories() -> list[Path]:
    return [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - a private one within it


def _fits(directory: Path) -> bool:
    """Whether libpq can name it: it cuts at a comma, which separates hosts."""
    path = os.fsencode(directory / SOCKET)
    return len(path) <= LONGEST_PATH_BYTES and b"," not in path


def _takes_sockets(directory: Path) -> bool:
    """Whether the file system has sockets (some shared ones have not)."""
    probe = directory / ".probe"
    with socket.socket(socket.AF_UNIX) as attempt:
        try:
            attempt.bind(str(probe))
        except OSError:
            return False
        finally:
            probe.unlink(missing_ok=True)
    return True


def _open_to(directory: Path, account: Account) -> bool:
    return account.is_ours or all(
        path.stat().st_mode & 0o001 for path in (directory, *directory.parents)
    )


def _ours(directory: Path, account: Account) -> bool:
    """Make the directory if need be; whether it is the account's own and nobody else's.

    Anybody may have made something of that name in a shared directory: it counts only if it is a
    directory, not a link, and belongs to the account, who alone may enter.
    """
    try:
        directory.mkdir(mode=0o700)
        account.give(directory)
    except FileExistsError:
        pass
    except OSError:
        return False
    status = directory.lstat()
    return (
        directory.is_dir()
        and not directory.is_symlink()
        and status.st_uid == account.uid
        and status.st_mode & 0o077 == 0
    )
