"""Starting a server so that it belongs to nobody's session and to no process's children.

The server is the grandchild of this process: a shell starts it in a session of its own, prints its
pid and ends. So it survives us, no Ctrl-C of ours reaches it, and when it ends it leaves no zombie
behind with us. It inherits a lock on a file beside its data and holds it for as long as it, or any
process that it forked, lives: a lock that is still held after ``kill -9`` means that somebody still
writes there, even one whom we cannot see (in another container that shares the directory).
"""

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from horolog.infrastructure.embedded.accounts import Account
from horolog.infrastructure.embedded.failures import EmbeddedServerFailed
from horolog.infrastructure.embedded.home import lock_within, open_lock

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""All that a server sees of ours: a PGDATA or a locale of the caller must not change it."""

_DETACH = '"$@" >&2 & echo $!'


@contextmanager
def claimed(path: Path, *, owner: Account, timeout_s: float) -> Generator[int | None]:
    """Hold the lock that a server holds while it lives; None if another has it past the timeout."""
    descriptor = open_lock(path, owner=owner)
    try:
        yield descriptor if lock_within(descriptor, timeout_s) else None
    finally:
        os.close(descriptor)


def detached(
    command: Sequence[str],
    *,
    account: Account,
    directory: Path,
    log: Path,
    log_owner: Account,
    claim: int,
) -> int:
    """Start ``command`` under ``account`` in ``directory``; returns its pid, at once.

    What it prints is appended to ``log``, which belongs to ``log_owner`` before the server starts:
    one that opens its log by itself would be refused a moment earlier. ``claim`` is the descriptor
    of the lock that it is to inherit. That it started says nothing: whoever calls waits until it
    answers.
    """
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        log_owner.give(output)
        shell = subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", _DETACH, "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=directory,
            env=ENVIRONMENT,
            umask=0o077,
            start_new_session=True,
            pass_fds=(claim,),
            check=False,
            **account.owning(),
        )
    finally:
        os.close(output)
    if shell.returncode != 0:
        raise EmbeddedServerFailed(
            f"{command[0]} could not be started: the shell that was to start it ended with "
            f"{shell.returncode}; see {log}"
        )
    return int(shell.stdout)


def finished(
    command: Sequence[str],
    *,
    account: Account,
    directory: Path,
    claim: int | None = None,
    timeout_s: float = 30.0,
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` to its end under ``account``; its exit status is the caller's to judge.

    With a ``claim`` the lock is held until the command ends, even if we are killed before it.
    """
    try:
        return subprocess.run(  # noqa: S603
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=directory,
            env=ENVIRONMENT,
            umask=0o077,
            pass_fds=() if claim is None else (claim,),
            timeout=timeout_s,
            check=False,
            **account.owning(),
        )
    except subprocess.TimeoutExpired as error:
        raise EmbeddedServerFailed(
            f"{command[0]} did not end within {timeout_s:g} s, and was stopped"
        ) from error
