"""The directory that the embedded servers belong to, its lock, and what it remembers.

    <home>/lock             held by whoever starts or stops something here
    <home>/servers.json     what must be the same after a restart (Remembered)
    <home>/postgres/        data/ (the cluster), run/ (its socket), postgres.log, lock
    <home>/nats/            jetstream/ (the streams), nats.conf, nats.log, lock

The home is private to its owner (0700). Nothing in it is trusted because it is there: a pid file, a
socket or a lock file that an unclean end left behind is no obstacle to the next start.
"""

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from horolog.infrastructure.embedded.accounts import (
    Account,
    account_for_servers,
    ourselves,
    owner_of,
)
from horolog.infrastructure.embedded.failures import EmbeddedHomeFailed

POLL_S = 0.02


class Remembered(BaseModel):
    """What a home keeps so that its URLs stay valid over restarts."""

    model_config = ConfigDict(frozen=True)

    home: Path | None = None
    """Where this was written: a copy of a home must not use the addresses of the original."""
    socket_directory: Path | None = None
    nats_port: int | None = None
    nats_password: str | None = None


class Home:
    """One home: paths, accounts, the lock between processes, and the memory.

    Two spellings of one directory are one home, since links are resolved. Nothing is created before
    :meth:`create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        self.mark = f"horolog-{digest}"
        """An argument of every server of this home and of no other process."""

    @property
    def exists(self) -> bool:
        """Whether there is such a directory."""
        return self.path.is_dir()

    @property
    def owner(self) -> Account:
        """Whose home it is."""
        return owner_of(self.path) if self.exists else ourselves()

    @property
    def servers(self) -> Account:
        """The account under which its servers run."""
        return account_for_servers(self.owner)

    def create(self) -> None:
        """Make the directory, private to its owner, if it is not there."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise EmbeddedHomeFailed(f"{self.path} is not a directory: name another home") from (
                error
            )

    def directory(self, name: str, *, owner: Account, mode: int = 0o700) -> Path:
        """The directory ``name`` within the home, made for ``owner`` if it is not there."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        # Not a link: root must not be led to change the rights of some other directory.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            owner.give(descriptor)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        return path

    @contextmanager
    def locked(self, *, timeout_s: float) -> Generator[None]:
        """Hold the home alone, among threads and processes; waits up to ``timeout_s``.

        The kernel drops the lock with its holder, so a lock file that was left behind holds nobody
        up. Without it two processes that start at once would both find nothing and both start.
        """
        path = self.path / "lock"
        descriptor = open_lock(path, owner=self.owner)
        try:
            if not lock_within(descriptor, timeout_s):
                raise EmbeddedHomeFailed(
                    f"another process has been starting or stopping the servers of {self.path} "
                    f"for {timeout_s:g} s: see who holds {path} (for example with `lslocks`)"
                )
            try:
                yield
            finally:  # a child that was forked meanwhile must not hold on to it
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def remembered(self) -> Remembered:
        """What was remembered here last; nothing if that cannot be read."""
        nothing = Remembered(home=self.path)
        try:
            text = (self.path / "servers.json").read_bytes()
            remembered = Remembered.model_validate_json(text)
        except (FileNotFoundError, ValidationError):
            return nothing
        return remembered if remembered.home == self.path else nothing

    def remember(self, remembered: Remembered) -> None:
        """Replace the memory in one step. The caller holds the lock."""
        write_whole(
            self.path / "servers.json",
            remembered.model_dump_json(indent=2) + "\n",
            owner=self.owner,
        )


def open_lock(path: Path, *, owner: Account) -> int:
    """A descriptor of the lock file at ``path``, made for ``owner`` if it is not there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    owner.give(descriptor)
    return descriptor


def lock_within(descriptor: int, timeout_s: float) -> bool:
    """Take an exclusive lock on an open file within ``timeout_s``; whether it was had."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        else:
            return True


def write_whole(path: Path, text: str, *, owner: Account, mode: int = 0o600) -> None:
    """Replace the file at ``path``; a reader sees the old text or the new, never a part.

    Root writes into directories that an ordinary account owns: a fresh name that is opened
    exclusively, then renamed, never follows a link that somebody put in the way.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        owner.give(fresh)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
